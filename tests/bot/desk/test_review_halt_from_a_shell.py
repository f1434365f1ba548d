"""`nodewarden halt` without a bot stops it wherever its socket lies."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from bot.cli import main

SETTINGS = Path(__file__).parents[3] / "config" / "example.yaml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    (folder / "nodewarden.db").touch()
    return folder


def test_a_halt_goes_to_the_data_folder_and_not_to_where_the_socket_lies(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.cli_verbs.DATA_FOLDER", folder)
    away = tmp_path / "run" / "nodewarden.sock"
    said = CliRunner().invoke(main, ["halt", "smoke", "--socket", str(away)])
    assert said.exit_code == 0, said.output
    assert (folder / "halt").read_text() == "smoke"


def test_a_halt_goes_to_the_data_folder_that_the_configuration_names(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.cli_verbs._configured", lambda _: folder)
    away = tmp_path / "run" / "nodewarden.sock"
    words = ["halt", "smoke", "--socket", str(away), "--config", str(SETTINGS)]
    said = CliRunner().invoke(main, words)
    assert said.exit_code == 0, said.output
    assert (folder / "halt").exists()


def test_who_cannot_write_there_is_told_whom_to_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.cli_verbs.DATA_FOLDER", tmp_path / "none")
    away = tmp_path / "run" / "nodewarden.sock"
    said = CliRunner().invoke(main, ["halt", "smoke", "--socket", str(away)])
    assert said.exit_code == 4
    assert "cannot be written by you" in said.output


def test_a_halt_file_beside_the_socket_halts_nothing_and_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.cli_verbs.DATA_FOLDER", tmp_path / "none")
    (tmp_path / "halt").touch()
    said = CliRunner().invoke(main, ["halt", "smoke", "--socket", str(tmp_path / "nw.sock")])
    assert said.exit_code == 4
    assert "NOT halted" in said.output
    assert str(tmp_path / "halt") not in said.output
