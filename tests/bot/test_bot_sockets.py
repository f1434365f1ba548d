"""The bot listens where other OS users reach it, says where, and nobody speaks to a stranger's socket."""

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from bot import bot_sockets, cli_verbs
from bot.bot_sockets import CannotListen, stranger, to_ask, to_listen
from bot.cli import main
from bot.local_client import BotAway, talk
from bot.local_door import LocalDoor
from bot.local_wire import Ask
from tests.bot.whole import whole

EVE = 4242
ASK = Ask(words=("status",), key="k", follow=False)
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: listens as another OS user")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The two default places, below a folder of the test."""
    run, data = tmp_path / "run" / "nodewarden" / "nodewarden.sock", tmp_path / "data"
    run.parent.parent.mkdir()
    data.mkdir(mode=0o700)
    monkeypatch.setattr(bot_sockets, "RUN", run)
    monkeypatch.setattr(bot_sockets, "DATA_FOLDER", data)
    monkeypatch.setattr(cli_verbs, "DATA_FOLDER", data)
    monkeypatch.delenv("NODEWARDEN_SOCKET", raising=False)
    return run, data


@contextmanager
def listening(path: Path, user: int = 0) -> Iterator[socket.socket]:
    """A program of this user at this path."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        if user:
            os.seteuid(user)
        try:
            listener.bind(str(path))
            listener.listen(4)
        finally:
            if user:
                os.seteuid(0)
        listener.settimeout(0)
        yield listener


def test_the_folder_in_run_is_made_for_everybody_to_enter(places: tuple[Path, Path]) -> None:
    run, data = places
    before = os.umask(0o077)
    try:
        place = to_listen(None, data)
    finally:
        os.umask(before)
    assert place.path == run
    assert "every OS user" in place.note
    assert stat.S_IMODE(run.parent.stat().st_mode) == 0o755


def test_without_a_place_in_run_it_listens_in_the_data_folder_and_says_why(
    places: tuple[Path, Path],
) -> None:
    run, data = places
    run.parent.parent.rmdir()
    place = to_listen(None, data)
    assert place.path == data / "nodewarden.sock"
    assert "cannot enter" in place.note
    assert "RuntimeDirectory" in place.note


def test_a_folder_into_which_others_may_write_is_not_used(places: tuple[Path, Path]) -> None:
    run, data = places
    run.parent.mkdir()
    run.parent.chmod(0o777)
    assert to_listen(None, data).path == data / "nodewarden.sock"


def test_the_place_of_another_bot_is_never_taken(places: tuple[Path, Path]) -> None:
    run, data = places
    run.parent.mkdir()
    with listening(run):
        place = to_listen(None, data)
        assert place.path == data / "nodewarden.sock"
        assert "another bot listens there" in place.note
        with pytest.raises(CannotListen, match="another program listens at"):
            to_listen(run, data)
    assert to_listen(None, data).path == run, "what a killed bot left is no bot"


def test_a_file_that_is_no_socket_is_left_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_text("not yours")
    with pytest.raises(CannotListen, match="is not a socket and was left alone"):
        to_listen(path, tmp_path)
    assert path.read_text() == "not yours"


def test_a_bot_with_a_data_folder_of_its_own_does_not_sit_at_the_common_place(
    places: tuple[Path, Path], tmp_path: Path
) -> None:
    assert to_listen(None, tmp_path / "other").path == tmp_path / "other" / "nodewarden.sock"
    assert to_ask(tmp_path / "other") == tmp_path / "other" / "nodewarden.sock"


def test_the_asker_looks_in_the_same_order(places: tuple[Path, Path]) -> None:
    run, data = places
    assert to_ask(data) == run
    with listening(data / "nodewarden.sock"):
        assert to_ask(data) == data / "nodewarden.sock"
        run.parent.mkdir()
        with listening(run):
            assert to_ask(data) == run


def test_a_command_without_options_finds_the_bot_in_run(
    places: tuple[Path, Path], tmp_path: Path
) -> None:
    run, data = places
    with whole(tmp_path) as site:
        bot = site.bot
        door = LocalDoor(to_listen(None, data).path, bot.desk, bot.identities, bot.answers)
        door.start()
        try:
            assert stat.S_IMODE(run.stat().st_mode) == 0o666
            said = CliRunner().invoke(main, ["whoami"])
        finally:
            door.stop()
    assert "nobody in the configuration" in said.output
    assert stat.S_IMODE(data.stat().st_mode) == 0o700


@only_root
def test_nothing_is_said_to_a_program_of_a_stranger(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    for parent in tmp_path.parents[:3]:
        parent.chmod(parent.stat().st_mode | 0o011)
    path = tmp_path / "nw.sock"
    with listening(path, EVE) as eve:
        with pytest.raises(BotAway, match=f"OS user {EVE}: neither root, nor you"):
            next(talk(path, ASK))
        heard, _ = eve.accept()
        with heard:
            assert heard.recv(10) == b""


@only_root
def test_the_owner_of_the_folder_is_the_bots_user_if_nobody_else_may_write_there(
    tmp_path: Path,
) -> None:
    path = tmp_path / "nw.sock"
    os.chown(tmp_path, EVE, EVE)
    tmp_path.chmod(0o755)
    assert stranger(path, EVE) == ""
    tmp_path.chmod(0o775)
    assert f"OS user {EVE}" in stranger(path, EVE)
    os.chown(tmp_path, 0, 0)
    tmp_path.chmod(0o755)
    assert f"OS user {EVE}" in stranger(path, EVE)
    assert stranger(path, 0) == ""
