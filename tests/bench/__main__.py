"""`python -m tests.bench`: measure everything and print one table. `make bench` starts it.

Nothing is kept between runs: the ledger is filled anew, in a folder beside the checkout, because a
file system in memory would flatter every number.
"""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench import everything_at_once
from tests.bench.cluster_speed import plan_times, snapshot_times
from tests.bench.everything_at_once import Load
from tests.bench.ground import fill, open_engine
from tests.bench.hands_speed import fan_out, recovery
from tests.bench.journal_speed import steps_per_second
from tests.bench.ledger_speed import bytes_per_run, storm, verify_rate
from tests.bench.questions import questions_per_run
from tests.bench.rows import Number, table
from tests.bench.slack_speed import acknowledgements
from tests.bench.start_speed import help_time, resume


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much of each thing."""

    rows: int
    samples: int
    seconds: float
    runs: int
    times: int
    plans: tuple[int, ...]
    hosts: int


FULL = Scale(
    rows=1_000_000, samples=2_000, seconds=10, runs=30, times=5, plans=(5_000, 10_000), hosts=500
)
QUICK = Scale(rows=20_000, samples=200, seconds=2, runs=5, times=2, plans=(200,), hosts=20)
OPEN_RUNS = 100

Measurement = Callable[[Path, Scale], list[Number]]


def _verify(folder: Path, scale: Scale) -> list[Number]:
    return verify_rate(folder / "nodewarden.db")


MEASUREMENTS: dict[str, Measurement] = {
    "help": lambda _, scale: help_time(2 * scale.times),
    "bytes": lambda folder, scale: bytes_per_run(folder, scale.runs),
    "storm": lambda folder, scale: storm(folder, int(scale.seconds * 20)),
    "snapshot": lambda folder, scale: snapshot_times(
        folder, nodes=5_000, jobs=50_000, times=scale.times
    ),
    "questions": lambda folder, _: questions_per_run(folder),
    "fan-out": lambda folder, scale: fan_out(folder, scale.hosts),
    "recovery": lambda folder, _: recovery(folder),
    "plan": lambda folder, scale: plan_times(folder, scale.plans),
    "verify": _verify,
    "steps": lambda folder, scale: steps_per_second(folder, seconds=scale.seconds),
    "resume": lambda folder, scale: resume(folder, OPEN_RUNS),
    "ack": lambda folder, scale: acknowledgements(folder, scale.samples),
    "everything": lambda folder, scale: everything_at_once.as_numbers(
        folder, Load(commands=scale.samples)
    ),
}
"""In this order: those that leave open runs behind come last."""
NEED_ROWS = ("verify", "steps", "resume", "ack", "everything")


def main() -> int:
    """Measure; 0 whatever comes out, because a number is no verdict on the code."""
    options = _options()
    scale = QUICK if options.quick else FULL
    rows = options.rows or scale.rows
    names = options.only or list(MEASUREMENTS)
    numbers: list[Number] = []
    with TemporaryDirectory(prefix="nodewarden-bench-", dir=options.folder) as room:
        full = Path(room) / "full"
        if set(names) & set(NEED_ROWS):
            _say(f"filling a ledger with {rows:,} rows")
            _fill(full, rows)
        for name in names:
            _say(f"measuring {name}")
            folder = Path(room) / name
            if name in NEED_ROWS:
                shutil.copytree(full, folder)
            else:
                folder.mkdir()
            numbers += MEASUREMENTS[name](folder, scale)
            shutil.rmtree(folder)
    print(_conditions(options.quick))
    print(table(numbers))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows and samples: a smoke test")
    parser.add_argument("--only", action="append", choices=list(MEASUREMENTS), help="one number")
    parser.add_argument("--rows", type=int, help="rows of the ledger beforehand")
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="on the disk to measure")
    return parser.parse_args()


def _fill(folder: Path, rows: int) -> None:
    folder.mkdir()
    engine = open_engine(folder)
    fill(engine.parts.ledger, rows)
    engine.parts.ledger.close()


def _conditions(quick: bool) -> str:
    cores = len(os.sched_getaffinity(0))
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    short = "a short run, no measurement; " if quick else ""
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    return f"{short}{when}, {cores} cores, load {load}, Python {sys.version.split()[0]}"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
