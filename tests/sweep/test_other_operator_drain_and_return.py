"""Another operator acts between any two commits and exactly at each write of drain and return."""

import pytest

from tests.sweep.acting_beside import assert_hands_off
from tests.sweep.theatre import Theatre


@pytest.mark.parametrize("name", ["drain-node", "drain-approved", "return-node"])
def test_nothing_of_another_operator_is_undone_and_no_run_hangs(stage: Theatre, name: str) -> None:
    assert_hands_off(stage, name)
