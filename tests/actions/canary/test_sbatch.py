"""The canary of a real cluster: argument lists, its account, and verdicts that are never guessed."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from actions.canary.sbatch import CanarySettings, SbatchCanary
from actions.contract import Rejected, Unreadable, WriteUnknown
from actions.hands import CanaryHands, CanaryWord
from actions.shell import Command, CommandFinished
from tests.actions.fakes import NODE

NAME = "nw-run-12-canary-gpu-01-0a1b2c3d"


@dataclass(slots=True)
class Answers:
    """A runner that answers from a list and keeps what it was asked."""

    given: list[CommandFinished] = field(default_factory=list)
    asked: list[Command] = field(default_factory=list)

    def run(self, command: Command) -> CommandFinished:
        self.asked.append(command)
        return self.given.pop(0) if self.given else CommandFinished(exit_code=0)

    def argv(self) -> Sequence[str]:
        return self.asked[-1].argv


def canary(runner: Answers, output: Path | None = None) -> SbatchCanary:
    settings = CanarySettings(
        user="nwcanary",
        command=("/opt/canary", "--note", "two words; rm -rf /"),
        time_limit=timedelta(seconds=90),
        pending_limit=timedelta(minutes=10),
        account="ops",
        partition="train",
        output=output,
        environment={"PATH": "/usr/bin", "SLURM_CONF": "/etc/slurm/slurm.conf"},
    )
    return SbatchCanary(settings, runner)


def says(text: str) -> CommandFinished:
    return CommandFinished(exit_code=0, stdout=text)


def test_it_is_the_hand_of_the_contract() -> None:
    hands: CanaryHands = canary(Answers())
    assert hands.state(NAME).word is CanaryWord.NONE


def test_it_is_submitted_as_the_account_for_this_node_alone_with_an_end() -> None:
    runner = Answers()
    canary(runner).start(NODE, NAME, NAME)
    argv = runner.argv()
    assert list(argv[:5]) == ["sudo", "-n", "-u", "nwcanary", "--"]
    assert {
        "--nodes=1",
        f"--nodelist={NODE}",
        f"--reservation={NAME}",
        f"--job-name={NAME}",
    } <= set(argv)
    assert {"--no-requeue", "--export=NONE", "--account=ops", "--partition=train"} <= set(argv)
    assert {"--time=2", "--deadline=now+690", "--output=/dev/null"} <= set(argv)
    assert "SLURM_CONF=/etc/slurm/slurm.conf" in argv


def test_its_command_stays_one_list_of_words() -> None:
    runner = Answers()
    canary(runner).start(NODE, NAME, NAME)
    wrapped = runner.argv()[-1].removeprefix("--wrap=")
    assert shlex.split(wrapped) == ["/opt/canary", "--note", "two words; rm -rf /"]


@pytest.mark.parametrize("name", ["", "-x", "a b", "x;y", "n" * 101])
def test_a_name_that_is_not_ours_goes_nowhere(name: str) -> None:
    runner = Answers()
    with pytest.raises(Rejected):
        canary(runner).start(NODE, NAME, name)
    with pytest.raises(Rejected):
        canary(runner).end(name)
    assert runner.asked == []


def test_what_may_have_been_submitted_is_not_called_refused() -> None:
    lost = CommandFinished(exit_code=None, timed_out=True, lost="time-out")
    with pytest.raises(WriteUnknown):
        canary(Answers([lost])).start(NODE, NAME, NAME)
    never = CommandFinished(exit_code=None, started=False, lost="no sudo")
    with pytest.raises(Rejected, match="no sudo"):
        canary(Answers([never])).start(NODE, NAME, NAME)
    refused = CommandFinished(exit_code=1, stderr="sudo: a password is required")
    with pytest.raises(Rejected, match="password"):
        canary(Answers([refused])).start(NODE, NAME, NAME)


@pytest.mark.parametrize(
    ("row", "word"),
    [
        (f"PENDING 0 {NAME}", CanaryWord.PENDING),
        (f"RUNNING 0 {NAME} gpu-01", CanaryWord.RUNNING),
        (f"COMPLETED 0 {NAME} gpu-01", CanaryWord.PASSED),
        (f"COMPLETED 0:0 {NAME} gpu-01", CanaryWord.PASSED),
        (f"COMPLETED 1 {NAME} gpu-01", CanaryWord.FAILED),
        (f"FAILED 256 {NAME} gpu-01", CanaryWord.FAILED),
        (f"TIMEOUT 0 {NAME} gpu-01", CanaryWord.FAILED),
        (f"NODE_FAIL 0 {NAME} gpu-01", CanaryWord.FAILED),
        (f"DEADLINE 0 {NAME}", CanaryWord.FAILED),
        (f"A_WORD_FROM_TOMORROW 0 {NAME}", CanaryWord.FAILED),
        ("COMPLETED 0 another-reservation gpu-01", CanaryWord.NONE),
        ("", CanaryWord.NONE),
    ],
)
def test_only_completed_with_code_0_in_our_reservation_has_passed(
    row: str, word: CanaryWord
) -> None:
    runner = Answers([says(f"{row}\n")])
    assert canary(runner).state(NAME).word is word
    assert {"--user=nwcanary", f"--name={NAME}", "--states=all"} <= set(runner.argv())


def test_no_answer_is_no_state() -> None:
    with pytest.raises(Unreadable):
        canary(Answers([CommandFinished(exit_code=1, stderr="timed out")])).state(NAME)


def test_only_jobs_of_the_account_and_that_name_are_ended() -> None:
    runner = Answers()
    canary(runner).end(NAME)
    assert runner.argv() == ("scancel", "--user=nwcanary", f"--name={NAME}")


def test_the_last_lines_of_its_output_are_shown(tmp_path: Path) -> None:
    text = "\n".join(f"line {number}" for number in range(1000))
    (tmp_path / f"{NAME}.out").write_bytes(text.encode() + b"\xff")
    seen = canary(Answers([says(f"FAILED 1 {NAME}")]), tmp_path).state(NAME)
    assert seen.lines.startswith("line 988")
    assert seen.lines.endswith("\\xff")


def test_an_output_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("token")
    (tmp_path / f"{NAME}.out").symlink_to(secret)
    assert canary(Answers([says(f"FAILED 1 {NAME}")]), tmp_path).state(NAME).lines == ""
