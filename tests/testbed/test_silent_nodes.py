"""What Slurm does about a node that it does not hear any more, and what it cannot do."""

import time
from collections.abc import Iterator

import pytest

from bot.testbed import SlurmTestbed, TestbedOptions
from tests.testbed.fixture import fresh_folder

pytestmark = pytest.mark.slurm


@pytest.fixture(scope="module")
def impatient() -> Iterator[SlurmTestbed]:
    """Three nodes that are DOWN soon after they fall silent."""
    if why := SlurmTestbed.missing():
        pytest.skip(why)
    options = TestbedOptions(slurmd_timeout=6)
    with fresh_folder() as folder, SlurmTestbed(folder, nodes=3, options=options) as testbed:
        yield testbed


def test_old_ranks_write_on_beside_the_new_ones_until_their_power_is_off(
    impatient: SlurmTestbed,
) -> None:
    job = impatient.queue_coupled("--nodes=1")
    impatient.wait_for_iteration(job, 1)
    sick = impatient.job(job.id)["NodeList"]

    impatient.cut_link(sick)
    impatient.wait_for(lambda: impatient.job(job.id)["Restarts"] == "1", "Slurm's own requeue")
    reason = impatient.run("scontrol", "show", "node", sick)
    impatient.wait_for_job(job.id, "PENDING")
    impatient.as_admin("scontrol", "update", f"JobId={job.id}", "StartTime=now")
    impatient.wait_for(job.two_writers, "two writers")
    impatient.power_off(sick)
    fenced = time.time() + 1
    impatient.wait_for(lambda: job.entries()[-1].time > fenced + 1, "the new ranks to write on")

    assert impatient.node_states(sick) >= {"DOWN", "NOT_RESPONDING"}
    assert "Reason=Not responding [slurm@" in reason
    (zero, old), (one, new) = job.two_writers()[0].hosts
    assert (zero, old, one) == (0, sick, 1)
    assert new != sick
    assert job.two_writers(since=fenced) == ()
