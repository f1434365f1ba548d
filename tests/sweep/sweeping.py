"""What each module of the crash sweep asserts of its scenarios."""

import pytest

from tests.sweep import golden_file
from tests.sweep.crash import HEAD, Sweep
from tests.sweep.scenarios import SCENARIOS
from tests.sweep.theatre import Theatre


def assert_survives(stage: Theatre, name: str) -> None:
    """A kill at every point, and one more at every commit of each recovery, changes nothing."""
    swept = Sweep(stage, SCENARIOS[name]).run()
    print(f"{HEAD}{swept.table()}kill points: {swept.points}, states: {swept.states}")
    if swept.failures:
        shown = "\n".join(swept.failures[:10])
        pytest.fail(f"{len(swept.failures)} of {swept.points} points; replay with\n{shown}")
    assert swept.table() == golden_file.part_of(name), "python -m tests.sweep.write, and review"
