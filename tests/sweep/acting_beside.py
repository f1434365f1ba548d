"""What each module of the other operator asserts of its scenarios; the golden table beside it."""

from pathlib import Path

import pytest

from tests.sweep.other_operator import (
    NOT_POSSIBLE,
    TARGETS,
    OtherOperator,
    acts,
    places_of,
    table_row,
)
from tests.sweep.theatre import Theatre

GOLDEN = Path(__file__).parent / "golden" / "other_operator.txt"
HEAD = f"{'scenario':17} {'act':11} {'places':>6}  how the run ended\n"


def sweep(stage: Theatre, name: str) -> tuple[str, list[str]]:
    """The rows of a scenario, and every complaint with what replays it."""
    operator = OtherOperator(stage, name)
    rows, complaints = "", []
    for act in acts(TARGETS[name]):
        if act in NOT_POSSIBLE.get(name, ()):
            continue
        where = places_of(operator.scenario, operator.labels)
        cases = [operator.play(act, place) for place in where]
        rows += table_row(name, act, cases)
        complaints += [f"{case.recipe}\n    {one}" for case in cases for one in case.complaints]
    return rows, complaints


def assert_hands_off(stage: Theatre, name: str) -> None:
    """Whatever somebody else does at any place: nothing of theirs is undone, no run hangs."""
    rows, complaints = sweep(stage, name)
    print(f"{HEAD}{rows}")
    if complaints:
        pytest.fail("\n".join([f"{len(complaints)} complaints", *complaints[:10]]))
    golden = GOLDEN.read_text("utf-8").splitlines(keepends=True)
    wanted = "".join(row for row in golden if row.split(" ")[0] == name)
    assert rows == wanted, "python -m tests.sweep.write, and review"
