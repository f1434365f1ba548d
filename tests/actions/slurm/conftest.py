"""Clients over recordings, and a runner that answers from a table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from actions.shell import Command, CommandFinished, Runner
from actions.slurm.cli import SlurmCli
from actions.slurm.tools import SlurmSettings
from config.clock import Instant
from config.ids import ClusterName
from tests.actions.slurm.replay import install

RECORDINGS = Path(__file__).parents[2] / "recordings"
CONFIG = (RECORDINGS / "22.05" / "scontrol-config.txt").read_text()
AT = datetime(2026, 11, 30, 17, 0, tzinfo=UTC)


@dataclass
class HandClock:
    """A clock that moves when a test says so."""

    wall: datetime = AT
    monotonic: timedelta = timedelta(seconds=1000)

    def now(self) -> Instant:
        return Instant(wall=self.wall, monotonic=self.monotonic)

    def pass_by(self, time: timedelta) -> None:
        self.wall += time
        self.monotonic += time


@dataclass
class ToldRunner:
    """Answers by the words of a command; keeps what it was asked."""

    answers: list[tuple[str, CommandFinished | str]] = field(default_factory=list)
    asked: list[Command] = field(default_factory=list)

    def tell(self, words: str, answer: CommandFinished | str) -> None:
        self.answers.insert(0, (words, answer))

    def run(self, command: Command) -> CommandFinished:
        self.asked.append(command)
        line = " ".join(command.argv)
        for words, answer in self.answers:
            if words in line:
                return done(answer) if isinstance(answer, str) else answer
        raise AssertionError(f"nothing told for {line}")

    @property
    def writes(self) -> list[Command]:
        return [command for command in self.asked if "update" in command.argv]


def done(stdout: str = "", stderr: str = "", code: int | None = 0) -> CommandFinished:
    return CommandFinished(exit_code=code, stdout=stdout, stderr=stderr)


def no_json() -> CommandFinished:
    return done(stderr="scontrol: unrecognized option '--json'", code=1)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def told() -> ToldRunner:
    runner = ToldRunner()
    runner.tell("show config", CONFIG)
    runner.tell("--json", no_json())
    runner.tell("sdiag", done(stderr="sdiag: command not found", code=127))
    return runner


@pytest.fixture
def over_recording(tmp_path: Path, clock: HandClock) -> Callable[..., SlurmCli]:
    """A client whose tools replay one recording."""

    def make(release: str, *, with_json: bool = True) -> SlurmCli:
        tools = install(tmp_path / "tools", RECORDINGS / release, with_json=with_json)
        settings = SlurmSettings(cluster=ClusterName("mini"), path=f"{tools}:/usr/bin:/bin")
        return SlurmCli(settings, Runner(), clock, clock.pass_by)

    return make


@pytest.fixture
def over_told(told: ToldRunner, clock: HandClock) -> SlurmCli:
    settings = SlurmSettings(cluster=ClusterName("mini"), own_user="nodewarden")
    return SlurmCli(settings, told, clock, clock.pass_by)


def words(commands: Sequence[Command]) -> list[str]:
    return [" ".join(command.argv) for command in commands]
