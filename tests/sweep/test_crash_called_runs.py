"""A kill anywhere in a run that returns a node, or calls another run for that, changes nothing."""

import pytest

from tests.sweep.sweeping import assert_survives
from tests.sweep.theatre import Theatre


@pytest.mark.parametrize("name", ["return-node", "dropped-A1-down", "dropped-A4a-ours"])
def test_a_kill_anywhere_and_once_more_in_the_recovery_changes_nothing(
    stage: Theatre, name: str
) -> None:
    assert_survives(stage, name)
