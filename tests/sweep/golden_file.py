"""The table of the crash sweep as it was read in review: `golden/crash.txt`."""

from collections.abc import Sequence
from pathlib import Path

from tests.sweep.crash import HEAD, Swept

PATH = Path(__file__).parent / "golden" / "crash.txt"


def part_of(scenario: str) -> str:
    """The rows of one scenario."""
    rows = PATH.read_text("utf-8").splitlines(keepends=True)
    return "".join(row for row in rows if row.split(" ")[0] == scenario)


def write(swept: Sequence[Swept]) -> None:
    """Write it anew."""
    rows = "".join(one.table() for one in swept)
    total = sum(one.points for one in swept)
    PATH.write_text(f"{HEAD}{rows}kill points: {total}\n", "utf-8")
