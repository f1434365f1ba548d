"""A kill anywhere in a run that requeues a job or replaces a node changes nothing.

The job is requeued once, the power is taken once, and never do two starts of a job write.
"""

import pytest

from tests.sweep.sweeping import assert_survives
from tests.sweep.theatre import Theatre


@pytest.mark.parametrize("name", ["requeue-job", "replace-node"])
def test_a_kill_anywhere_and_once_more_in_the_recovery_changes_nothing(
    stage: Theatre, name: str
) -> None:
    assert_survives(stage, name)
