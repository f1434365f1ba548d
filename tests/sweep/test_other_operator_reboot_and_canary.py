"""Another operator acts between commits and at writes of a reboot, and of a return with its canary."""

import pytest

from tests.sweep.acting_beside import assert_hands_off
from tests.sweep.theatre import Theatre


@pytest.mark.parametrize("name", ["reboot-node", "return-canary"])
def test_nothing_of_another_operator_is_undone_and_no_run_hangs(stage: Theatre, name: str) -> None:
    assert_hands_off(stage, name)
