"""The site's own program, as real processes: exit codes and one word, and nothing is guessed."""

from datetime import timedelta
from pathlib import Path

import pytest

from actions.contract import Refusal, Rejected, Unreadable, WriteUnknown
from actions.power.script import Script
from actions.power_hands import PowerState
from actions.shell import Runner
from config.node_names import NodeName
from tests.patience import DEADLINE

NODE = NodeName("gpu-01")


def script(folder: Path, body: str, *, limit: float = DEADLINE) -> Script:
    program = folder / "site-power"
    program.write_text(f'#!/bin/sh\necho "$#:$1:$2" >> {folder}/called\n{body}\n')
    program.chmod(0o755)
    return Script(
        runner=Runner(),
        bmc=lambda node: "pdu-1; rm -rf $HOME" if node == NODE else "",
        script=program,
        limit=timedelta(seconds=limit),
    )


@pytest.mark.parametrize("word", ["on", "off", "unknown"])
def test_one_word_is_the_power(tmp_path: Path, word: str) -> None:
    assert script(tmp_path, f"echo {word}").status(NODE).state is PowerState(word)


def test_verb_and_address_are_two_arguments_and_no_shell_reads_them(tmp_path: Path) -> None:
    power = script(tmp_path, "exit 0")
    power.off(NODE, "e1")
    power.on(NODE, "e2")
    power.cycle(NODE, "e3")
    called = (tmp_path / "called").read_text().splitlines()
    assert called == [f"2:{verb}:pdu-1; rm -rf $HOME" for verb in ("off", "on", "cycle")]


@pytest.mark.parametrize("body", ["echo off; exit 1", "echo OFF", "echo off off", "", "echo maybe"])
def test_anything_else_is_not_off(tmp_path: Path, body: str) -> None:
    with pytest.raises(Unreadable):
        script(tmp_path, body).status(NODE)


@pytest.mark.parametrize(
    "code, error", [(3, Rejected), (4, Unreadable), (1, WriteUnknown), (255, WriteUnknown)]
)
def test_the_exit_code_says_whether_anything_happened(
    tmp_path: Path, code: int, error: type[Exception]
) -> None:
    with pytest.raises(error, match="no luck"):
        script(tmp_path, f"echo no luck >&2; exit {code}").off(NODE, "e1")


def test_a_program_that_hangs_or_dies_may_have_switched(tmp_path: Path) -> None:
    with pytest.raises(WriteUnknown, match="did not end within"):
        script(tmp_path, "sleep 600", limit=0.5).off(NODE, "e1")
    with pytest.raises(WriteUnknown, match="SIGKILL"):
        script(tmp_path, "kill -9 $$").off(NODE, "e1")


def test_a_program_that_is_not_there_did_nothing(tmp_path: Path) -> None:
    power = script(tmp_path, "exit 0")
    (tmp_path / "site-power").unlink()
    with pytest.raises(Unreadable, match="nothing was sent"):
        power.off(NODE, "e1")


def test_a_node_without_an_address_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="gpu-99 has no BMC address"):
        script(tmp_path, "exit 0").off(NodeName("gpu-99"), "e1")
