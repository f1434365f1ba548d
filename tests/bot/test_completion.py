"""What TAB offers: names from the running bot, and nothing at all where it cannot be asked."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from bot.cli import main
from bot.commands import VERBS, Kind, Verb
from bot.completion import candidates
from bot.local_wire import decode_ask, encode_reply
from bot.replies import done
from config.permissions import Permission
from tests.bot.whole import Whole, whole

ROOT = Path(__file__).parents[2]
Answering = Callable[[socket.socket], None]


@contextmanager
def served(path: Path, attend: Answering) -> Iterator[None]:
    """A socket at which each visitor is attended to."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    visitor, _ = listener.accept()
                except OSError:
                    return
                with visitor:
                    attend(visitor)

        threading.Thread(target=serve, daemon=True).start()
        yield
        listener.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def bot(tmp_path: Path) -> Iterator[Path]:
    """The socket of a whole bot."""
    with whole(tmp_path) as there, served(tmp_path / "nw.sock", lambda who: attend(there, who)):
        there.says("ann", "drain gpu-070 x")
        yield tmp_path / "nw.sock"


def attend(there: Whole, who: socket.socket) -> None:
    """As the door does it, for ann."""
    with who.makefile("rb") as said:
        ask = decode_ask(said.readline())
    who.sendall(encode_reply(there.says("ann", " ".join(ask.words)), None))


def offered(bot: Path, verb: Verb, *typed: str, begun: str = "") -> list[str]:
    return candidates(VERBS[verb], typed, begun, bot)


def test_names_come_from_the_running_bot(bot: Path) -> None:
    assert offered(bot, Verb.DRAIN, begun="gpu-07") == [f"gpu-07{digit}" for digit in range(10)]
    assert offered(bot, Verb.ABORT) == ["run-1"]
    assert offered(bot, Verb.STATUS, begun="run") == ["run-1"]
    assert offered(bot, Verb.RUN, begun="drain") == ["drain-node"]
    assert {"node-dropped", "return-node"} <= set(offered(bot, Verb.RUN))
    assert offered(bot, Verb.RUN, "node-dropped", begun="gpu-01") == [
        f"gpu-01{digit}" for digit in range(10)
    ]
    assert offered(bot, Verb.CAN) == ["adm", "ann", "bob"]


def test_words_of_the_table_need_no_bot(tmp_path: Path) -> None:
    nobody = tmp_path / "nobody"
    assert offered(nobody, Verb.CAN, "ann", begun="node.") == [
        one.value for one in Permission if one.value.startswith("node.")
    ]
    assert "verify" in offered(nobody, Verb.AUDIT)
    assert "actor=" in offered(nobody, Verb.AUDIT, "query", begun="a")
    assert offered(nobody, Verb.LIST, begun="no") == ["nodes"]
    assert offered(nobody, Verb.LIST, "nodes", begun="dr") == ["drain"]
    assert offered(nobody, Verb.LIST, "runs") == []
    assert offered(nobody, Verb.RUN, begun="--dr") == ["--dry-run"]
    assert "audit" in offered(nobody, Verb.HELP, begun="a")


def test_nothing_is_offered_past_the_last_word(bot: Path) -> None:
    assert offered(bot, Verb.NODE, "gpu-001") == []
    assert offered(bot, Verb.ABORT, "run-1") == []
    assert offered(bot, Verb.WHOAMI) == []


@pytest.mark.parametrize(
    "answer",
    [b"", b"nonsense\n", b'{"reply": null}\n', b'{"reply": {"data": {"nodes": 7}}}\n', None],
    ids=["hangs up", "no JSON", "no reply", "no list", "says nothing"],
)
def test_an_odd_bot_offers_nothing(tmp_path: Path, answer: bytes | None) -> None:
    over = threading.Event()

    def attend(who: socket.socket) -> None:
        who.recv(4096)
        if answer is None:
            over.wait(30)
        else:
            who.sendall(answer)

    with served(tmp_path / "nw.sock", attend):
        assert offered(tmp_path / "nw.sock", Verb.DRAIN) == []
        over.set()


def test_the_shell_gets_names_and_no_message(tmp_path: Path) -> None:
    def tab(text: str, **given: str) -> subprocess.CompletedProcess[str]:
        words = {"COMP_WORDS": text, "COMP_CWORD": str(len(text.split(" ")) - 1)}
        environment = {**os.environ, **words, "_NODEWARDEN_COMPLETE": "bash_complete", **given}
        command = [sys.executable, "-c", "from bot.cli import main; main(prog_name='nodewarden')"]
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )

    def attend(who: socket.socket) -> None:
        who.recv(4096)
        who.sendall(encode_reply(done("x", data={"nodes": [{"node": "gpu-7"}]}), None))

    path = tmp_path / "nw.sock"
    with served(path, attend):
        told = tab("nodewarden node gpu", NODEWARDEN_SOCKET=str(path))
    assert (told.stdout.split(), told.stderr) == (["plain,gpu-7"], "")
    away = tab("nodewarden node gpu", NODEWARDEN_SOCKET=str(tmp_path / "nobody"))
    assert (away.stdout.split(), away.stderr) == ([], "")
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("bot: no\n")
    for named in (wrong, tmp_path / "none.yaml"):
        odd = tab(f"nodewarden node --config {named} gpu")
        assert (odd.stdout.split(), odd.stderr) == ([], "")


def test_every_verb_with_words_says_what_may_stand_there() -> None:
    kinds = frozenset(kind.value for kind in Kind)
    for verb, spec in VERBS.items():
        assert bool(spec.takes) == (spec.words[1] > 0 and verb is not Verb.HALT), verb
        for place in spec.takes:
            assert all(word in kinds or not word.startswith("<") for word in place)


def test_the_script_of_each_shell_is_printed() -> None:
    for shell in ("bash", "zsh", "fish"):
        printed = CliRunner().invoke(main, ["completion", shell])
        assert "_NODEWARDEN_COMPLETE" in printed.output
