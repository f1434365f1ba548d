"""The controller forgets: killed after each write of each runbook, under each ReturnToService."""

import pytest

from tests.sweep.forgetting import MODES, Forgetting
from tests.sweep.scenarios import SCENARIOS
from tests.sweep.theatre import Theatre


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", list(SCENARIOS))
def test_a_forgotten_write_is_made_again_or_told_and_no_node_returns_unvalidated(
    stage: Theatre, name: str, mode: int
) -> None:
    found = [
        f"{at.recipe}\n    {at.wrong}" for at in Forgetting(stage, name, mode).play() if at.wrong
    ]
    assert not found, "\n".join(found)
