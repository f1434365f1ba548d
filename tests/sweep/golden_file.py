"""The tables of the sweep as they were read in review: `golden/crash.txt`, `golden/other_operator.txt`."""

from collections.abc import Mapping
from pathlib import Path

from tests.sweep.crash import HEAD
from tests.sweep.scenarios import SCENARIOS

PATH = Path(__file__).parent / "golden" / "crash.txt"


def part_of(scenario: str, path: Path = PATH) -> str:
    """The rows of one scenario."""
    rows = path.read_text("utf-8").splitlines(keepends=True)
    return "".join(row for row in rows if row.split(" ")[0] == scenario)


def write(tables: Mapping[str, str], path: Path = PATH, head: str = HEAD) -> None:
    """Put these parts in; those of other scenarios stay."""
    parts = {name: tables.get(name) or part_of(name, path) for name in SCENARIOS}
    path.write_text(head + "".join(parts.values()), "utf-8")
