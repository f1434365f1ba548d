"""Nothing is lost and nothing half done: SIGSTOP for ten minutes, a clock set by an hour, no slurmctld."""

import pytest

from tests.sweep.disturbances import DISTURBANCES, Disturbed
from tests.sweep.scenarios import SCENARIOS
from tests.sweep.theatre import Theatre


@pytest.mark.parametrize("name", list(SCENARIOS))
def test_a_run_ends_as_if_it_had_not_been_disturbed(stage: Theatre, name: str) -> None:
    disturbed = Disturbed(stage, name)
    complaints = []
    for kind in DISTURBANCES:
        for place in disturbed.places(kind):
            differs = disturbed.play(kind, place.commit)
            complaints += [f"{place.recipe}\n    {differs}"] if differs else []
    shown = "\n".join(complaints[:10])
    assert not complaints, f"{len(complaints)} complaints; replay with\n{shown}"
