"""Sweep everything and write the golden tables again: `python -m tests.sweep.write`."""

import sys

from tests.sweep import acting_beside, golden_file
from tests.sweep.crash import Sweep, Swept
from tests.sweep.scenarios import SCENARIOS
from tests.sweep.theatre import theatre


def main() -> int:
    """Print each part as it is ready; 1 when something did not end as without a crash."""
    swept: list[Swept] = []
    rows, complaints = "", list[str]()
    with theatre() as stage:
        for scenario in SCENARIOS.values():
            done = Sweep(stage, scenario).run()
            swept.append(done)
            print(done.table(), *done.failures, sep="\n", flush=True)
            row, found = acting_beside.sweep(stage, scenario.name)
            print(row, *found, sep="\n", flush=True)
            rows, complaints = rows + row, complaints + found
    golden_file.write(swept)
    acting_beside.GOLDEN.write_text(acting_beside.HEAD + rows, "utf-8")
    print(f"kill points: {sum(done.points for done in swept)}")
    return int(any(done.failures for done in swept) or bool(complaints))


if __name__ == "__main__":
    sys.exit(main())
