"""Each fault does to a real Slurm what it does on a real cluster, and has a way back."""

import subprocess

import pytest

from bot.testbed import SlurmTestbed, TestbedError
from tests.testbed.reboots import resume_after_a_reboot

pytestmark = pytest.mark.slurm


def _commands_with(words: str) -> list[str]:
    shown = subprocess.run(
        ["ps", "-ww", "-eo", "stat=,args="], capture_output=True, text=True, check=True
    )
    return [line for line in shown.stdout.splitlines() if words in line and line[0] != "Z"]


def test_a_job_survives_the_death_of_a_slurmd_that_is_started_in_time(
    slurm_testbed: SlurmTestbed,
) -> None:
    job = slurm_testbed.train(("gpu-01", "gpu-02"))

    slurm_testbed.kill_slurmd("gpu-01")
    while_dead = slurm_testbed.wait_for_next_step(job, "gpu-01")
    slurm_testbed.start_slurmd("gpu-01")
    after_start = slurm_testbed.wait_for_next_step(job, "gpu-01")

    facts = slurm_testbed.job(job.id)
    assert (facts["JobState"], facts["Restarts"]) == ("RUNNING", "0")
    assert while_dead.number < after_start.number
    assert {step.restarts for step in job.steps()} == {0}
    assert {step.host for step in job.steps()} == {"gpu-01", "gpu-02"}
    slurm_testbed.cancel(job.id)
    slurm_testbed.wait_for_states("gpu-01", "IDLE")


def test_a_job_survives_a_restart_of_slurmd(slurm_testbed: SlurmTestbed) -> None:
    job = slurm_testbed.train(("gpu-03", "gpu-04"))
    before = slurm_testbed.unit("gpu-03")["pid"]

    slurm_testbed.stop_slurmd("gpu-03")
    slurm_testbed.start_slurmd("gpu-03")

    slurm_testbed.wait_for_next_step(job, "gpu-03")
    assert slurm_testbed.unit("gpu-03")["pid"] != before
    assert slurm_testbed.job(job.id)["Restarts"] == "0"
    slurm_testbed.cancel(job.id)


def test_a_killed_slurmd_is_a_failed_unit(slurm_testbed: SlurmTestbed) -> None:
    slurm_testbed.kill_slurmd("gpu-10")
    dead = slurm_testbed.unit("gpu-10")
    slurm_testbed.start_slurmd("gpu-10")
    alive = slurm_testbed.unit("gpu-10")

    assert (dead["state"], dead["result"], dead["pid"]) == ("failed", "signal", 0)
    assert (alive["state"], alive["result"]) == ("active", "success")
    assert alive["pid"] > 0


def test_fewer_gpus_than_configured_are_an_invalid_registration(
    slurm_testbed: SlurmTestbed,
) -> None:
    slurm_testbed.shrink_gres("gpu-11", 7)
    states = slurm_testbed.node_states("gpu-11")
    shown = slurm_testbed.run("scontrol", "show", "node", "gpu-11")
    with pytest.raises(TestbedError, match="Invalid node state"):
        slurm_testbed.admin_resume("gpu-11")
    slurm_testbed.restore_gres("gpu-11")

    assert "INVALID_REG" in states
    assert "gres/gpu count reported lower than configured (7 < 8)" in shown
    assert "INVALID_REG" not in slurm_testbed.node_states("gpu-11")
    slurm_testbed.admin_resume("gpu-11")
    slurm_testbed.wait_for_states("gpu-11", "IDLE")


def test_an_admins_drain_carries_the_admins_name(slurm_testbed: SlurmTestbed) -> None:
    slurm_testbed.admin_drain("gpu-12", "bad fan, vendor comes")
    shown = slurm_testbed.run("scontrol", "show", "node", "gpu-12")
    slurm_testbed.admin_resume("gpu-12")

    assert f"Reason=bad fan, vendor comes [{slurm_testbed.options.admin_user}@" in shown
    slurm_testbed.wait_for_states("gpu-12", "IDLE")


def test_a_reboot_gives_a_new_boot_id_and_moves_the_kernel_log(slurm_testbed: SlurmTestbed) -> None:
    node = "gpu-09"
    before = slurm_testbed.boot_id(node)
    slurm_testbed.write_kernel_log(node, "NVRM: Xid (PCI:0000:1b:00): 79\n")

    slurm_testbed.reboot(node)

    log = slurm_testbed.layout.node_folder(node) / "kernel-previous.log"
    assert slurm_testbed.boot_id(node) != before
    assert log.read_text() == "NVRM: Xid (PCI:0000:1b:00): 79\n"
    slurm_testbed.wait_for_states(node, "DOWN")
    shown = slurm_testbed.run("scontrol", "show", "node", node)
    assert "Reason=Node unexpectedly rebooted [slurm@" in shown
    resume_after_a_reboot(slurm_testbed, node)


def test_a_reboot_ends_the_steps_of_the_node(slurm_testbed: SlurmTestbed) -> None:
    job = slurm_testbed.train(("gpu-10",), "--partition=short", "--no-requeue")
    before = slurm_testbed.node("gpu-10")["SlurmdStartTime"]
    assert _commands_with(str(job.journal))

    slurm_testbed.reboot("gpu-10")

    assert _commands_with(str(job.journal)) == []
    slurm_testbed.wait_for_job(job.id, "NODE_FAIL")
    slurm_testbed.wait_for(  # the registration makes it DOWN, whatever it was before
        lambda: slurm_testbed.node("gpu-10")["SlurmdStartTime"] != before, "gpu-10 registers"
    )
    assert slurm_testbed.node_states("gpu-10") == {"DOWN"}
    assert "Node unexpectedly rebooted" in slurm_testbed.run("scontrol", "show", "node", "gpu-10")
    resume_after_a_reboot(slurm_testbed, "gpu-10")


def test_scontrol_reboot_reboots_the_node(slurm_testbed: SlurmTestbed) -> None:
    before = slurm_testbed.boot_id("gpu-10")

    slurm_testbed.as_admin("scontrol", "reboot", "gpu-10")

    slurm_testbed.wait_for(lambda: slurm_testbed.boot_id("gpu-10") != before, "a new boot id")
    slurm_testbed.wait_for_states("gpu-10", "IDLE")


def test_the_controller_stops_and_comes_back(slurm_testbed: SlurmTestbed) -> None:
    slurm_testbed.stop_controller()
    stopped = slurm_testbed.controller_runs()

    slurm_testbed.start_controller()

    assert not stopped
    slurm_testbed.wait_for_states("gpu-01", "IDLE")


def test_partitions_and_reservations_can_be_edited(slurm_testbed: SlurmTestbed) -> None:
    slurm_testbed.set_partition("spare", State="DOWN")
    slurm_testbed.reserve("fans", "gpu-12", flags="maint,ignore_jobs")
    state, shown = (
        slurm_testbed.partition("spare")["State"],
        slurm_testbed.run("scontrol", "show", "res"),
    )
    slurm_testbed.delete_reservation("fans")
    slurm_testbed.set_partition("spare", State="UP")

    assert state == "DOWN"
    assert "ReservationName=fans" in shown
    assert slurm_testbed.partition("spare")["State"] == "UP"
