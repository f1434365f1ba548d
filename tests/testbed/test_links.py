"""A pulled cable separates and kills nothing."""

import subprocess

import pytest

from bot.testbed import SlurmTestbed
from tests.testbed.reboots import resume_after_a_reboot

pytestmark = pytest.mark.slurm


def _ssh(testbed: SlurmTestbed, node: str) -> subprocess.CompletedProcess[str]:
    argv = ["ssh", "-F", str(testbed.ssh_config), "-o", "ConnectTimeout=2", node, "hostname"]
    return subprocess.run(testbed.as_bot(argv), capture_output=True, text=True, check=False)


def _controller_answers(testbed: SlurmTestbed) -> bool:
    argv = testbed.as_bot(["timeout", "2", "scontrol", "ping"])
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return "is UP" in done.stdout


def test_the_ranks_of_a_cut_node_write_on(slurm_testbed: SlurmTestbed) -> None:
    job = slurm_testbed.train(("gpu-03", "gpu-04"))

    slurm_testbed.cut_link("gpu-03")
    cut = _ssh(slurm_testbed, "gpu-03")
    slurm_testbed.wait_for_next_step(job, "gpu-03")
    other = _ssh(slurm_testbed, "gpu-04")
    slurm_testbed.restore_link("gpu-03")

    assert (cut.returncode, other.stdout) == (255, "gpu-04\n")
    assert "Connection timed out" in cut.stderr
    assert _ssh(slurm_testbed, "gpu-03").stdout == "gpu-03\n"
    assert slurm_testbed.job(job.id)["JobState"] == "RUNNING"
    slurm_testbed.cancel(job.id)


def test_a_node_without_power_is_silent(slurm_testbed: SlurmTestbed) -> None:
    slurm_testbed.power_off("gpu-12")
    off = _ssh(slurm_testbed, "gpu-12")
    slurm_testbed.power_on("gpu-12")
    slurm_testbed.wait_for(lambda: "DOWN" in slurm_testbed.node_states("gpu-12"), "the new boot")
    resume_after_a_reboot(slurm_testbed, "gpu-12")

    assert "Connection timed out" in off.stderr
    assert _ssh(slurm_testbed, "gpu-12").stdout == "gpu-12\n"


def test_a_bot_without_uplink_sees_nobody_and_everybody_lives(slurm_testbed: SlurmTestbed) -> None:
    slurm_testbed.cut_bot_uplink()
    blind = _ssh(slurm_testbed, "gpu-05"), _controller_answers(slurm_testbed)
    states = slurm_testbed.node_states("gpu-05")
    slurm_testbed.restore_bot_uplink()

    assert "Connection timed out" in blind[0].stderr
    assert not blind[1]
    assert states == {"IDLE"}
    assert _controller_answers(slurm_testbed)
    assert _ssh(slurm_testbed, "gpu-05").stdout == "gpu-05\n"
