"""Everything at once: no envelope stays unacknowledged while the bot is asked for all it can do.

Commands at a steady rate, threads that submit through the command line's door, snapshots of a long
queue, verifying and backups, together. Called by the benchmark and, shorter, by the tests.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from audit_log.backup import back_up
from audit_log.verify import verify
from bot.local_client import BotAway, talk
from bot.local_wire import Ask
from tests.bench.cluster_speed import long_snapshot
from tests.bench.rows import Number
from tests.bench.served import bot, configuration, simulated
from tests.bench.slack_speed import open_runs, typed, workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How much of everything."""

    commands: int
    threads: int = 32
    jobs: int = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What came of it."""

    commands: int
    missed: int
    """Envelopes that were not acknowledged within three seconds."""
    submitted: int
    unanswered: int
    snapshots: int
    verified: int
    backups: int
    sound: bool


class _Counted:
    """Does one thing again and again until the load is over."""

    def __init__(self, work: Callable[[int], bool]) -> None:
        self._work = work
        self.good = 0
        self.bad = 0

    def until(self, over: threading.Event, first: int = 0) -> None:
        """Count how often it went well."""
        number = first
        while not over.is_set():
            if self._work(number):
                self.good += 1
            else:
                self.bad += 1
            number += 1


def everything(folder: Path, load: Load) -> Told:
    """All of it, over a ledger in this folder."""
    with ExitStack() as stack:
        stack.enter_context(simulated(folder))
        open_runs(folder)
        slack = stack.enter_context(workspace())
        stack.enter_context(bot(configuration(folder, slack), slack))
        slack.wait_for_bot(within=120)
        asking = [_Counted(lambda number: _asked(folder, number)) for _ in range(load.threads)]
        snapshot = stack.enter_context(long_snapshot(folder, load.jobs))
        looking = _Counted(lambda _: snapshot() == load.jobs)
        verifying = _Counted(lambda _: verify(folder / "nodewarden.db").sound)
        saving = _Counted(
            lambda number: back_up(folder / "nodewarden.db", folder / f"b{number}").sound
        )
        over = threading.Event()
        with ThreadPoolExecutor(load.threads + 3) as pool:
            for number, one in enumerate((*asking, looking, verifying, saving)):
                pool.submit(one.until, over, 1_000_000 * number)
            try:
                sent = typed(slack, load.commands)
            finally:
                over.set()
        missed = slack.unacked
    return Told(
        commands=len(sent),
        missed=missed,
        submitted=sum(one.good for one in asking),
        unanswered=sum(one.bad for one in asking),
        snapshots=looking.good,
        verified=verifying.good,
        backups=saving.good,
        sound=not looking.bad and not verifying.bad and not saving.bad,
    )


def _asked(folder: Path, number: int) -> bool:
    """One request that commits a record, through the Unix socket; whether it was answered."""
    words = ("hands-off", f"gpu-{201 + number % 40}", f"asked {number}")
    ask = Ask(words=words, key=f"everything-{number}", follow=False)
    with contextlib.suppress(BotAway):
        return any("reply" in line for line in talk(folder / "nw.sock", ask))
    time.sleep(0.05)
    return False


def as_numbers(folder: Path, load: Load) -> list[Number]:
    """For the table."""
    told = everything(folder, load)
    under = (
        f"{load.threads} threads submitted {told.submitted:,}, {told.snapshots} snapshots of "
        f"{load.jobs:,} jobs, {told.verified} verified, {told.backups} backups"
    )
    return [
        Number(
            name="everything at once: not acknowledged",
            value=told.missed,
            unit="",
            target="<= 0",
            samples=told.commands,
            under=under,
        )
    ]
