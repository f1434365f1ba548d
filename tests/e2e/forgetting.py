"""slurmctld dies half a second after a write of a bot at work; who watches the nodes meanwhile.

The bot's scontrol tells of each write that slurmctld has answered. Then the controller is killed and
comes back, or the second one takes over, and reads its configuration anew; at that an admin drains a
node that nobody else has drained.
"""

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path

from bot.testbed import SlurmTestbed, TestbedError
from bot.testbed.commands import ask
from bot.testbed.layout import BACKUP
from bot.testbed.training import CoupledJob
from tests.e2e import quiet
from tests.e2e.served import ServedBot
from tests.e2e.twins import approve, rests, rows, settle, state

SICK = "gpu-02"
EARLY, LATE = "gpu-04", "gpu-05"
"""Drained by an admin: before the run begins, and right after the first loss."""
SOON, LOOK = 0.5, 0.3
PLAIN_BACK, CANARY_BACK = "State=RESUME ", "delete "
"""The write that lets a node back: without a canary, and with one that passed inside a reservation."""
_SCONTROL = """\
#!/bin/sh
# Each write is noted once slurmctld has answered, and the one that lets a node back also before it is seen.
[ -e {tools}/armed ] || exec {scontrol} "$@"
case " $* " in
    *" update "*|*" create "*|*" delete "*|*" requeue "*|*" reboot "*) ;;
    *) exec {scontrol} "$@" ;;
esac
case " $* " in *" {back}"*) : > {tools}/back ;; esac
{scontrol} "$@"; code=$?
echo "$*" > {tools}/$$.part && mv {tools}/$$.part {tools}/$$.write
exit $code
"""


class Return(StrEnum):
    """How the cluster gets a controller again."""

    RESTART = "restarted"
    FAIL_OVER = "failed over"


@dataclass(kw_only=True)
class Seen:
    """What there was to see while it went on."""

    losses: list[str] = field(default_factory=list)
    """The write before each death of slurmctld."""
    unvalidated: list[str] = field(default_factory=list)
    """Times at which the sick node could have been given work that nobody let it have."""
    polls: int = 0


class Stage:
    """A testbed, a bot of its own on it, and the hand that kills the controller."""

    def __init__(
        self, testbed: SlurmTestbed, way: Return, name: str, *, canary: bool = False
    ) -> None:
        self.testbed, self.way = testbed, way
        site = f"canary: {json.dumps(_canary(testbed))}" if canary else ""
        self.bot = ServedBot(testbed, testbed.folder / name, canary=site)
        self.job: CoupledJob | None = None
        self.boot_id = testbed.boot_id(SICK)
        self.tools = self.bot.folder / "bin"
        self.tools.mkdir()
        self.tools.chmod(0o777)
        script = self.tools / "scontrol"
        back = CANARY_BACK if canary else PLAIN_BACK
        scontrol = shutil.which("scontrol")
        script.write_text(_SCONTROL.format(tools=self.tools, scontrol=scontrol, back=back))
        script.chmod(0o755)
        text = self.bot.config.read_text().replace("nwann", testbed.options.admin_user)
        text = text.replace("gpu-[11-12]", "gpu-06")
        text = text.replace("units:", f"slurm_binaries: {self.tools}\n    units:")
        self.bot.config.write_text(f"{text}policy: {{autonomy: {{default: act, rules: []}}}}\n")
        self.seen = Seen()
        self._over = threading.Event()
        self._done: set[Path] = set()

    def carry_out(self, words: tuple[str, ...], most: int, person: str = "") -> str:
        """The run with up to so many losses; returns when it rests, a minute after the last.

        `person` is a node that an admin drains right after the first loss, besides the usual ones.
        """
        if EARLY not in self._drained():
            self.testbed.admin_drain(EARLY, "RMA 4")
        self.saved()
        (self.tools / "armed").touch()
        with ThreadPoolExecutor(2) as pool:
            watch = pool.submit(self._watch)
            loss = pool.submit(self._lose, most, tuple(filter(None, (LATE, person))))
            try:
                run = self.bot.json(*words, "--no-wait").run
                self._follow(run, lambda: loss.done() or not self._fresh())
            finally:
                self._over.set()
            loss.result()
            watch.result()
        return run

    def _follow(self, run: str, calm: Callable[[], object]) -> None:
        """Say yes where it asks, until it rests and has rested through the minute of the last loss."""

        def over() -> bool:
            if state(self.bot, run) == "awaiting_approval":
                approve(self.bot, run)
            return rests(self.bot, run) and bool(calm())

        self.testbed.wait_for(over, f"{run} comes to rest", seconds=1500)
        quiet.settle(self.testbed)
        settle(self.bot, run)

    def _lose(self, most: int, drained: tuple[str, ...]) -> None:
        while not self._over.wait(0.02) and len(self.seen.losses) < most:
            found = self._fresh()
            write = found[0].read_text().strip() if found else ""
            if write in self.seen.losses:
                self._done.add(found[0])  # done once more: else a run would never end
            if not write or write in self.seen.losses:
                continue
            self._over.wait(SOON)
            self.seen.losses.append(write)
            self._kill_and_bring_back()
            # What was written before the kill has had its loss.
            self._done.update(self._fresh())
            if len(self.seen.losses) == 1:
                for node in drained:
                    self.testbed.admin_drain(node, f"RMA {node}")

    def _fresh(self) -> list[Path]:
        found = set(self.tools.glob("*.write")) - self._done
        return sorted(found, key=lambda path: path.stat().st_mtime)

    def _kill_and_bring_back(self) -> None:
        testbed = self.testbed
        if self.way is Return.RESTART:
            testbed.kill_controller()
            testbed.start_controller()
        elif testbed.controller_runs():
            testbed.fail_over()
        else:
            ask(testbed.layout.node_socket(BACKUP), "signal", "slurmctld", signal.SIGKILL)
            testbed.start_controller()
            testbed.start_backup()
        testbed.run("scontrol", "reconfigure")

    def _watch(self) -> None:
        """No node that was sick, or that was restarted, may be open to work before we let it back."""
        healthy = not self._flags() & {"DRAIN", "DOWN"}
        while not self._over.wait(LOOK):
            validated = (self.tools / "back").exists()
            try:
                flags = self._flags()
                sick = not healthy or self.testbed.boot_id(SICK) != self.boot_id
            except (TestbedError, OSError):
                continue  # nobody can be given work by a controller that does not answer
            self.seen.polls += 1
            if sick and not validated and _open(flags):
                self.seen.unvalidated.append(f"{time.time():.1f} {'+'.join(sorted(flags))}")

    def _flags(self) -> frozenset[str]:
        return self.testbed.node_states(SICK)

    def _drained(self) -> set[str]:
        return {name for name in self.testbed.nodes if "DRAIN" in self.testbed.node_states(name)}

    def saved(self) -> None:
        """Wait until slurmctld has saved what its nodes are now."""
        path, since = self.testbed.folder / "slurmctld" / "node_state", time.time()
        self.testbed.run("scontrol", "update", f"NodeName={EARLY}", f"Comment={since}")
        self.testbed.wait_for(lambda: path.stat().st_mtime > since + 1, "slurmctld saves its nodes")

    def pages(self) -> list[str]:
        """What people were told."""
        return [summary for (summary,) in rows(self.bot, "SELECT summary FROM pages")]

    def told(self) -> str:
        """Everything, for whoever reads a failure."""
        names = [name for (name,) in rows(self.bot, "SELECT id FROM runs ORDER BY number")]
        cards = [self.bot.ask("status", name).text for name in names]
        return "\n".join([json.dumps(self.seen.__dict__, indent=1), *self.pages(), *cards])

    def put_back(self) -> None:
        """The cluster as it was, by an admin's hands; the bot ends."""
        self.bot.kill()
        testbed = self.testbed
        if self.job is not None:
            testbed.cancel(self.job.id)
        if not testbed.controller_runs():
            testbed.fail_back()
        for line in testbed.run("scontrol", "--oneliner", "show", "reservations").splitlines():
            if line.startswith("ReservationName="):
                testbed.delete_reservation(line.split()[0].partition("=")[2])
        if testbed.unit(SICK)["state"] != "active":
            testbed.start_slurmd(SICK)
        for node in testbed.nodes:
            testbed.wait_for(partial(self._comes_back, node), f"{node} is idle")

    def _comes_back(self, node: str) -> bool:
        flags = self.testbed.node_states(node)
        # A node that a fresh controller has not heard yet refuses RESUME.
        if flags & {"DOWN", "DRAIN"} and "NOT_RESPONDING" not in flags:
            self.testbed.admin_resume(node)
        return flags == {"IDLE"}


def _open(flags: frozenset[str]) -> bool:
    """Whether Slurm may start somebody's job there now."""
    working = flags & {"IDLE", "ALLOCATED", "MIXED"}
    return bool(working) and not flags & {"DRAIN", "RESERVED", "MAINT", "MAINTENANCE"}


def _canary(testbed: SlurmTestbed) -> dict[str, object]:
    testbed.layout.jobs.chmod(0o755)
    return {
        "user": testbed.options.job_user,
        "command": ["/bin/true"],
        "partition": "train",
        "time_limit": "2m",
        "output": str(testbed.layout.jobs),
    }


@contextmanager
def may_become_the_canary(testbed: SlurmTestbed) -> Iterator[None]:
    """The bot's user may become its account, as the operations manual says."""
    rule = Path(f"/etc/sudoers.d/nodewarden-test-{os.getpid()}")
    rule.write_text(f"{testbed.bot_user} ALL=({testbed.options.job_user}) NOPASSWD: ALL\n")
    rule.chmod(0o440)
    try:
        yield
    finally:
        rule.unlink()


@contextmanager
def staged(
    testbed: SlurmTestbed, way: Return, name: str, *, canary: bool = False
) -> Iterator[Stage]:
    """The stage, before the bot is started on it."""
    stage = Stage(testbed, way, name, canary=canary)
    try:
        yield stage
    finally:
        stage.put_back()
