"""What the night looks like without the bot: the proof that it is the bot who saves the job."""

import pytest

from tests.e2e.odd import Odd, odd

__all__ = ["odd"]
pytestmark = [pytest.mark.e2e, pytest.mark.slurm]


def test_its_job_dies(odd: Odd) -> None:
    testbed = odd.testbed
    job = testbed.train(["gpu-01", "gpu-02"])
    testbed.kill_slurmd("gpu-01")
    testbed.wait_for(
        lambda: (
            testbed.job(job.id)["JobState"] != "RUNNING" or testbed.job(job.id)["Restarts"] != "0"
        ),
        "the job is requeued or gone",
    )
    testbed.start_slurmd("gpu-01")
    testbed.cancel(job.id)
    testbed.wait_for_states("gpu-01", "IDLE")
