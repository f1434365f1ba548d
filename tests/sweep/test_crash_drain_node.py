"""A bot that is killed anywhere in drain-node is continued by the next one, and nothing is done twice."""

import pytest

from tests.sweep import golden_file
from tests.sweep.scenarios import SCENARIOS
from tests.sweep.sweeping import assert_survives
from tests.sweep.theatre import Theatre


@pytest.mark.parametrize("name", ["drain-node", "drain-approved"])
def test_a_kill_anywhere_and_once_more_in_the_recovery_changes_nothing(
    stage: Theatre, name: str
) -> None:
    assert_survives(stage, name)


def test_the_table_has_every_scenario_and_no_other() -> None:
    rows = golden_file.PATH.read_text("utf-8").splitlines()[1:]
    assert list(dict.fromkeys(row.split(" ")[0] for row in rows)) == list(SCENARIOS)
