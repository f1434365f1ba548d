"""A kill anywhere in a run that reboots a node, or returns it through its canary, changes nothing."""

import pytest

from tests.sweep.sweeping import assert_survives
from tests.sweep.theatre import Theatre


@pytest.mark.parametrize("name", ["reboot-node", "return-canary", "return-spoiled"])
def test_a_kill_anywhere_and_once_more_in_the_recovery_changes_nothing(
    stage: Theatre, name: str
) -> None:
    assert_survives(stage, name)
