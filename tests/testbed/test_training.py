"""A training job of the testbed stands and falls as a whole, and goes on from its checkpoint."""

from functools import partial

import pytest

from bot.testbed import SlurmTestbed
from bot.testbed.training import CoupledJob

pytestmark = pytest.mark.slurm


def test_a_requeued_job_goes_on_from_its_checkpoint(slurm_testbed: SlurmTestbed) -> None:
    job = slurm_testbed.train_coupled(("gpu-01", "gpu-02"))
    slurm_testbed.wait_for(job.checkpoint, "a checkpoint")
    saved = job.checkpoint()
    shards = sorted(path.name for path in (job.folder / f"iter_{saved:07d}").iterdir())

    slurm_testbed.as_admin("scontrol", "requeue", str(job.id))
    slurm_testbed.wait_for_job(job.id, "PENDING")
    slurm_testbed.as_admin("scontrol", "update", f"JobId={job.id}", "StartTime=now")
    slurm_testbed.wait_for(
        lambda: [entry for entry in job.entries() if entry.restart == 1], "the second start"
    )
    slurm_testbed.cancel(job.id)

    found = job.entries()
    first, second = ([e for e in found if e.restart == number] for number in (0, 1))
    assert shards == ["mp_rank_00", "mp_rank_01"]
    assert saved <= min(entry.step for entry in second) <= max(entry.step for entry in first) + 1
    assert {entry.host for entry in first} == {"gpu-01", "gpu-02"}
    assert job.two_writers() == ()


def test_one_rank_that_stands_still_stops_all(slurm_testbed: SlurmTestbed) -> None:
    job = slurm_testbed.train_coupled(("gpu-03", "gpu-04"))

    for fault, heal, letter in (
        (slurm_testbed.stop_rank, slurm_testbed.wake_rank, "T"),
        (slurm_testbed.spin_rank, slurm_testbed.calm_rank, "R"),
    ):
        fault(job, "gpu-04")
        slurm_testbed.wait_for(partial(_is_stuck, job, "gpu-03"), "gpu-03 to wait")
        stuck = job.iteration(), slurm_testbed.rank_state(job, "gpu-04")
        heal(job, "gpu-04")

        assert stuck[1] == letter
        slurm_testbed.wait_for_iteration(job, stuck[0] + 2)
    slurm_testbed.cancel(job.id)


def _is_stuck(job: CoupledJob, host: str) -> bool:
    """A waiting rank says its last step again."""
    steps = [entry.step for entry in job.entries() if entry.host == host]
    return len(steps) != len(set(steps)) and steps[-1] == steps[-2]


def test_one_day_jobs_fill_a_partition_and_the_others_wait(slurm_testbed: SlurmTestbed) -> None:
    jobs = slurm_testbed.fill_queue(6, "--partition=short")
    argv = ("squeue", "--noheader", "--partition=short", "--format=%T %l")
    wanted = 4 * ["RUNNING 1-00:00:00"] + 2 * ["PENDING 1-00:00:00"]

    slurm_testbed.wait_for(
        lambda: sorted(slurm_testbed.run(*argv).splitlines()) == sorted(wanted), "a full partition"
    )
    slurm_testbed.cancel_all(jobs)
