"""A bot that is killed anywhere in node-dropped is continued by the next one."""

import pytest

from tests.sweep.sweeping import assert_survives
from tests.sweep.theatre import Theatre


@pytest.mark.parametrize("name", ["dropped-A1", "dropped-A4b"])
def test_a_kill_anywhere_and_once_more_in_the_recovery_changes_nothing(
    stage: Theatre, name: str
) -> None:
    assert_survives(stage, name)
