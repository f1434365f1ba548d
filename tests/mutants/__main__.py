"""`python -m tests.mutants`: break each promise once and see which test notices.

`make mutants` starts it. It works in copies and never touches the checkout. A mutant counts as caught
only when its test passes on the unbroken copy and fails on the broken one: a test that cannot run
proves nothing.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

from tests.mutants import of_fencing, of_runs, of_sight, of_the_hands, of_the_log, of_the_nodes
from tests.mutants.mutant import ROOT, Mutant

ALL = (
    *of_runs.MUTANTS,
    *of_the_log.MUTANTS,
    *of_the_hands.MUTANTS,
    *of_the_nodes.MUTANTS,
    *of_fencing.MUTANTS,
    *of_sight.MUTANTS,
)
COPIED = ("actions", "audit_log", "bot", "config", "runbooks", "tests", "docs", "pyproject.toml")
WORKERS = 2
LONGEST = 600
"""Seconds for one test run."""
FAILED = 1
"""Pytest's exit code for tests that ran and failed; 2 to 5 mean that they did not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of one mutant."""

    mutant: Mutant
    caught_by: str
    """Empty: nobody noticed."""
    trouble: str
    seconds: float

    @property
    def caught(self) -> bool:
        """Whether the right thing happened."""
        return bool(self.caught_by) and not self.trouble


def main() -> int:
    """0 when every mutant was caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", default="", help="those whose promise or file has this in it")
    only = parser.parse_args().only
    chosen = [one for one in ALL if only in one.promise or only in one.file]
    with TemporaryDirectory(prefix="nodewarden-mutants-") as room:
        verdicts = list(_all(Path(room), chosen))
    survived = [verdict for verdict in verdicts if not verdict.caught]
    print(f"{len(verdicts) - len(survived)} of {len(verdicts)} mutants were caught")
    return 1 if survived else 0


def _all(room: Path, chosen: Sequence[Mutant]) -> Iterator[Verdict]:
    """Every verdict, as soon as it is there, in the order of the table."""
    copies = [_copied(room / f"copy-{number}") for number in range(WORKERS)]
    free = {copy: Lock() for copy in copies}
    sound: dict[str, str] = {}
    print(f"{'promise':64}  {'broken at':38}  {'caught by':70}  time")
    with ThreadPoolExecutor(WORKERS) as pool:
        work = partial(_judged, free=free, turns=cycle(copies), sound=sound)
        for verdict in pool.map(work, chosen):
            told = verdict.caught_by if verdict.caught else f"SURVIVED {verdict.trouble}"
            place = verdict.mutant.place()
            print(f"{verdict.mutant.promise:64}  {place:38}  {told:70}  {verdict.seconds:4.0f} s")
            sys.stdout.flush()
            yield verdict


def _copied(target: Path) -> Path:
    """A checkout of its own, without what is only kept to be fast."""
    target.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy(source, target / name)
    return target


def _judged(
    mutant: Mutant, free: dict[Path, Lock], turns: Iterator[Path], sound: dict[str, str]
) -> Verdict:
    """Run its test on the unbroken copy, once for all mutants, and on the broken one."""
    copy = next(turns)
    with free[copy]:
        begun = time.monotonic()
        caught_by, trouble = "", ""
        if mutant.times(copy) != 1:
            trouble = f"its place is found {mutant.times(copy)} times: the table is out of date"
        else:
            if mutant.test not in sound:
                code, first = _tested(copy, mutant.test)
                sound[mutant.test] = f"its test does not pass unbroken: {first}" if code else ""
            trouble = sound[mutant.test]
            if not trouble:
                caught_by, trouble = _broken(copy, mutant)
        seconds = time.monotonic() - begun
    return Verdict(mutant=mutant, caught_by=caught_by, trouble=trouble, seconds=seconds)


def _broken(copy: Path, mutant: Mutant) -> tuple[str, str]:
    """What noticed, and why that does not count."""
    file = copy / mutant.file
    whole = file.read_text("utf-8")
    file.write_text(mutant.broken(copy), "utf-8")
    try:
        code, first = _tested(copy, mutant.test)
    finally:
        file.write_text(whole, "utf-8")
    if code in {0, FAILED}:
        return first if code else "", ""
    return "", f"its test could not run (code {code}): {first}"


def _tested(copy: Path, test: str) -> tuple[int, str]:
    """Pytest's exit code, and the first test that failed."""
    argv = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", test]
    # Byte code of the broken file would be taken for that of the mended one: times have seconds.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(copy)}
    try:
        done = subprocess.run(
            argv, cwd=copy, env=environment, capture_output=True, text=True, timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return FAILED, f"no end within {LONGEST} s"
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    named = lines[0].split(" - ")[0].split(" ", 1)[1] if lines else ""
    return done.returncode, named.rpartition("/")[2]


if __name__ == "__main__":
    sys.exit(main())
