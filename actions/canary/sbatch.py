"""The canary on a real cluster: a batch job that sudo submits as the site's canary account.

Constructed by `actions.catalogue`. The job's name is the effect's, so that it is found after a crash. It
must never start anything as the bot's own user, and never believe a job of that name of another account.
"""

import os
import re
import shlex
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from actions.contract import Rejected, Unreadable, WriteUnknown
from actions.hands import Canary, CanaryWord
from actions.shell import Command, CommandFinished
from config.node_names import NodeName

_READ_LIMIT = timedelta(seconds=20)
_WRITE_LIMIT = timedelta(seconds=30)
_MINUTE = timedelta(minutes=1)
_TAIL = 4096
_LINES = 12
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", re.ASCII)
_FORM = "State:24,exit_code:16,Reservation:104,NodeList:256"
"""No text that a user wrote is among these."""
_WAITS = frozenset({"PENDING", "CONFIGURING", "REQUEUED", "SUSPENDED", "STOPPED"})
_RUNS = frozenset({"RUNNING", "COMPLETING", "STAGE_OUT", "SIGNALING"})


class Runs(Protocol):
    """Starts a program and waits for it (`actions.shell.Runner`)."""

    def run(self, command: Command) -> CommandFinished:
        """Run to the end or the time limit."""
        ...


def sudo(user: str) -> tuple[str, ...]:
    """Beginning of a command line that another account carries out."""
    return ("sudo", "-n", "-u", user, "--")


@dataclass(frozen=True, slots=True, kw_only=True)
class CanarySettings:
    """How the site wants its canary."""

    user: str
    command: tuple[str, ...]
    time_limit: timedelta
    pending_limit: timedelta
    """So long it may wait to be started; then Slurm drops it, whoever is alive to do so."""
    account: str = ""
    partition: str = ""
    output: Path | None = None
    """Folder for its output, or None."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The whole environment of Slurm's tools."""
    become: Callable[[str], Sequence[str]] = sudo


@dataclass(frozen=True, slots=True)
class SbatchCanary:
    """`actions.hands.CanaryHands` over sbatch, squeue and scancel."""

    settings: CanarySettings
    runner: Runs

    def start(self, node: NodeName, reservation: str, effect_id: str) -> None:
        """Submit it for exactly this node, inside this reservation."""
        settings = self.settings
        words = [f"{key}={value}" for key, value in sorted(settings.environment.items())]
        argv = (
            *settings.become(settings.user),
            *("env", "-i", *words, "sbatch"),
            *self._options(node, _name(reservation), _name(effect_id)),
            f"--wrap={shlex.join(settings.command)}",
        )
        done = self.runner.run(Command(argv=argv, time_limit=_WRITE_LIMIT, environment=_PLAIN))
        if done.ok:
            return
        if done.started and done.exit_code is None:
            raise WriteUnknown(f"the canary may have been submitted: {done.lost}")
        raise Rejected(_said(done))

    def _options(self, node: NodeName, reservation: str, name: str) -> list[str]:
        settings = self.settings
        minutes = max(1, -(-settings.time_limit // _MINUTE))
        latest = (settings.pending_limit + settings.time_limit) // timedelta(seconds=1)
        folder = settings.output
        options = [
            "--parsable",
            "--no-requeue",
            "--export=NONE",
            "--exclusive",
            "--nodes=1",
            "--chdir=/",
            f"--nodelist={node}",
            f"--reservation={reservation}",
            f"--job-name={name}",
            f"--time={minutes}",
            f"--deadline=now+{latest}",
            f"--output={_output_of(folder, name) if folder else '/dev/null'}",
        ]
        options += [f"--account={settings.account}"] if settings.account else []
        options += [f"--partition={settings.partition}"] if settings.partition else []
        return options

    def state(self, effect_id: str) -> Canary:
        """How far it has come. Raises Unreadable."""
        name = _name(effect_id)
        argv = (
            *("squeue", "--noheader", "--all", "--local", "--states=all"),
            *(f"--name={name}", f"--user={self.settings.user}", f"--Format={_FORM}"),
        )
        done = self._run(argv, _READ_LIMIT)
        if not done.ok or done.truncated:
            raise Unreadable(f"no word of the canary {name}: {_said(done)}")
        rows = [line.split() for line in done.stdout.splitlines() if line.strip()]
        found = [row for row in rows if len(row) >= _COLUMNS and row[2] in {name, "(null)"}]
        if not found:
            return Canary(word=CanaryWord.NONE)
        state, code = found[-1][0], found[-1][1]
        return Canary(
            word=_word(state, code), why=f"{state}, exit code {code}", lines=self._lines(name)
        )

    def end(self, effect_id: str) -> None:
        """End it if it has not ended."""
        argv = ("scancel", f"--user={self.settings.user}", f"--name={_name(effect_id)}")
        done = self._run(argv, _WRITE_LIMIT)
        if done.started and done.exit_code is None:
            raise WriteUnknown(f"the canary may have been ended: {done.lost}")
        if not done.ok:
            raise Rejected(_said(done))

    def _run(self, argv: tuple[str, ...], limit: timedelta) -> CommandFinished:
        command = Command(argv=argv, time_limit=limit, environment=self.settings.environment)
        return self.runner.run(command)

    def _lines(self, name: str) -> str:
        """The end of its output; empty where it cannot be read. It was written by the account."""
        if self.settings.output is None:
            return ""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            handle = os.open(_output_of(self.settings.output, name), flags)
        except OSError:
            return ""
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                return ""
            file.seek(max(0, found.st_size - _TAIL))
            text = file.read(_TAIL).decode("utf-8", "backslashreplace")
        return "\n".join(text.splitlines()[-_LINES:])


_PLAIN = {"PATH": os.defpath, "LC_ALL": "C"}
_COLUMNS = 3


def _output_of(folder: Path, name: str) -> Path:
    return folder / f"{name}.out"


def _word(state: str, code: str) -> CanaryWord:
    """A word that is not known is no success."""
    if state in _WAITS:
        return CanaryWord.PENDING
    if state in _RUNS:
        return CanaryWord.RUNNING
    return CanaryWord.PASSED if (state, code) in _PASSED else CanaryWord.FAILED


_PASSED = frozenset({("COMPLETED", "0"), ("COMPLETED", "0:0")})


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise Rejected(f"{text[:60]!r} is no name of an effect of ours")
    return text


def _said(done: CommandFinished) -> str:
    return (done.stderr.strip() or done.lost or f"exit code {done.exit_code}")[:300]
