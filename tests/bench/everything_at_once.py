"""Everything at once: no envelope stays unacknowledged while the bot is asked for all it can do.

Commands at a steady rate from here; threads that submit through the command line's door, snapshots
of a long queue, verifications and backups from `tests.bench.crowd`. Called by the benchmark and,
shorter, by the tests.
"""

import json
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.bench.crowd import AT_WORK
from tests.bench.rows import Number
from tests.bench.served import bot, configuration, interpreter, simulated
from tests.bench.slack_speed import open_runs, typed, workspace

LONGEST = 120
"""Seconds in which the crowd must have gone home."""


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
    faults: int
    """Snapshots that were not whole, ledgers that were not sound."""


def everything(folder: Path, load: Load) -> Told:
    """All of it, over the ledger in this folder."""
    with ExitStack() as stack:
        stack.enter_context(simulated(folder))
        open_runs(folder)
        slack = stack.enter_context(workspace())
        stack.enter_context(bot(configuration(folder, slack), slack))
        slack.wait_for_bot(within=120)
        slack.person("ann").command("#ops", "/ops whoami").expect_ephemeral(within=60)
        crowd = subprocess.Popen(
            [*interpreter(), "tests.bench.crowd", str(folder), str(load.jobs), str(load.threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        stack.callback(crowd.kill)
        early = load.commands // 2
        sent = typed(slack, early)  # while the bot has just begun and the crowd is on its way
        if crowd.stdout is None or crowd.stdout.readline().decode().strip() != AT_WORK:
            raise RuntimeError("the crowd did not come")
        sent += typed(slack, load.commands - early, early)
        missed = sum(one.interaction.acked_after is None for one in sent)
        said, _ = crowd.communicate(timeout=LONGEST)
    return Told(commands=len(sent), missed=missed, **json.loads(said))


def as_numbers(folder: Path, load: Load) -> list[Number]:
    """For the table."""
    told = everything(folder, load)
    under = (
        f"{load.threads} threads submitted {told.submitted:,}, {told.snapshots} snapshots of "
        f"{load.jobs:,} jobs, {told.verified} verified, {told.backups} backups; "
        f"{told.unanswered} unanswered, {told.faults} faults"
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
