"""Sweep and write the golden tables again: `python -m tests.sweep.write [SCENARIO…]`, else everything."""

import sys

from tests.sweep import acting_beside, golden_file
from tests.sweep.crash import Sweep
from tests.sweep.other_operator import TARGETS
from tests.sweep.scenarios import SCENARIOS
from tests.sweep.theatre import Theatre, theatre


def main(names: list[str]) -> int:
    """Print each part as it is ready; 1 when something did not end as without a crash."""
    wrong = False
    with theatre() as stage:
        for name in names or list(SCENARIOS):
            done = Sweep(stage, SCENARIOS[name]).run()
            print(done.table(), *done.failures, sep="\n")
            print(f"kill points: {done.points}", flush=True)
            golden_file.write({name: done.table()})
            wrong |= bool(done.failures) | (name in TARGETS and _act(stage, name))
    return int(wrong)


def _act(stage: Theatre, name: str) -> bool:
    """The same with another operator; whether there is a complaint."""
    rows, complaints = acting_beside.sweep(stage, name)
    print(rows, *complaints, sep="\n", flush=True)
    golden_file.write({name: rows}, acting_beside.GOLDEN, acting_beside.HEAD)
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
