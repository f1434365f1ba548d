"""A node that hands out no process numbers, and one whose disk holds every writer."""

import subprocess
from pathlib import Path

import pytest

from bot.testbed import SlurmTestbed

pytestmark = pytest.mark.slurm
needs_disks = pytest.mark.skipif(
    bool(SlurmTestbed.missing_disks()), reason=SlurmTestbed.missing_disks()
)


def _ssh(testbed: SlurmTestbed, node: str) -> subprocess.CompletedProcess[str]:
    argv = ["ssh", "-F", str(testbed.ssh_config), "-o", "ConnectTimeout=5", node, "hostname"]
    return subprocess.run(testbed.as_bot(argv), capture_output=True, text=True, check=False)


def _own_limits() -> bool:
    """Whether this kernel has a limit of process numbers for each namespace."""
    release = Path("/proc/sys/kernel/osrelease").read_text(encoding="ascii").split(".")
    return (int(release[0]), int(release[1])) >= (6, 14)


@pytest.mark.skipif(not _own_limits(), reason="a kernel before 6.14 has one limit for all")
def test_a_node_without_process_numbers_starts_nothing_and_ends_nothing(
    slurm_testbed: SlurmTestbed,
) -> None:
    job = slurm_testbed.train_coupled(("gpu-05", "gpu-06"))

    slurm_testbed.fill_pids("gpu-05")
    full = _ssh(slurm_testbed, "gpu-05")
    other = _ssh(slurm_testbed, "gpu-06")
    slurm_testbed.wait_for_iteration(job, job.iteration() + 2)
    slurm_testbed.free_pids("gpu-05")
    slurm_testbed.start_slurmd("gpu-05")  # it gives up where it was asked something meanwhile

    assert (full.returncode, full.stdout) == (255, "")
    assert "timed out" not in full.stderr
    assert other.stdout == "gpu-06\n"
    assert _ssh(slurm_testbed, "gpu-05").stdout == "gpu-05\n"
    slurm_testbed.cancel(job.id)


@needs_disks
def test_a_rank_on_a_frozen_disk_stops_all_and_goes_on_after_the_thaw(
    slurm_testbed: SlurmTestbed,
) -> None:
    slurm_testbed.give_scratch("gpu-08")
    job = slurm_testbed.train_coupled(("gpu-07", "gpu-08"))

    slurm_testbed.freeze("gpu-08")
    slurm_testbed.wait_for(lambda: slurm_testbed.rank_state(job, "gpu-08") == "D", "D state")
    stood = job.iteration()
    slurm_testbed.thaw("gpu-08")

    slurm_testbed.wait_for_iteration(job, stood + 2)
    slurm_testbed.cancel(job.id)
