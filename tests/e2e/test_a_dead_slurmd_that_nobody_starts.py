"""What the night looks like without the bot: the proof that it is the bot who saves the job."""

import pytest

from bot.testbed import SlurmTestbed, TestbedOptions
from tests.e2e.odd import odd
from tests.testbed.fixture import fresh_folder

__all__ = ["odd"]
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slurm,
    # The clusters of the other files: their quiet minute goes by while a job dies here.
    pytest.mark.usefixtures("slurm_testbed", "odd"),
]


def test_its_job_dies() -> None:
    options = TestbedOptions(cluster="alone", slurmd_timeout=15)
    with fresh_folder() as folder, SlurmTestbed(folder, nodes=3, options=options) as testbed:
        job = testbed.train(["gpu-01", "gpu-02"])
        assert testbed.job(job.id)["Restarts"] == "0"
        testbed.kill_slurmd("gpu-01")
        testbed.wait_for(
            lambda: (
                testbed.job(job.id)["JobState"] != "RUNNING"
                or testbed.job(job.id)["Restarts"] != "0"
            ),
            "the job is requeued or gone",
        )
        assert "DOWN" in testbed.node_states("gpu-01")
