"""Sweep every scenario and write `golden/crash.txt` again: `python -m tests.sweep.write`."""

import sys

from tests.sweep import golden_file
from tests.sweep.crash import Sweep
from tests.sweep.scenarios import SCENARIOS
from tests.sweep.theatre import theatre


def main() -> int:
    """Print each part as it is ready; 1 when something did not end as without a crash."""
    swept = []
    with theatre() as stage:
        for scenario in SCENARIOS.values():
            done = Sweep(stage, scenario).run()
            swept.append(done)
            print(done.table(), *done.failures, sep="\n", flush=True)
    golden_file.write(swept)
    print(f"kill points: {sum(done.points for done in swept)}")
    return int(any(done.failures for done in swept))


if __name__ == "__main__":
    sys.exit(main())
