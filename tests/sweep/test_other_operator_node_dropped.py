"""Another operator acts between any two commits and exactly at each write of node dropped."""

import pytest

from tests.sweep.acting_beside import assert_hands_off
from tests.sweep.theatre import Theatre


@pytest.mark.parametrize(
    "name", ["dropped-A1", "dropped-A1-down", "dropped-A4a-ours", "dropped-A4b"]
)
def test_nothing_of_another_operator_is_undone_and_no_run_hangs(stage: Theatre, name: str) -> None:
    assert_hands_off(stage, name)
