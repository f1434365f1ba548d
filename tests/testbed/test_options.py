"""A testbed is what its options say: who sees what, who may what, who rules when a controller ends."""

import subprocess
from collections.abc import Iterator

import pytest

from bot.testbed import SlurmTestbed, TestbedError, TestbedOptions
from tests.testbed.fixture import fresh_folder

pytestmark = pytest.mark.slurm

_UNUSUAL = TestbedOptions(
    return_to_service=0,
    private_data="jobs",
    backup_controller=True,
    hidden_partition=True,
    preemption=True,
    bot_level="Operator",
)


@pytest.fixture(scope="module")
def unusual() -> Iterator[SlurmTestbed]:
    """Three nodes; every option is another than usual."""
    if why := SlurmTestbed.missing():
        pytest.skip(why)
    with fresh_folder() as folder, SlurmTestbed(folder, nodes=3, options=_UNUSUAL) as testbed:
        yield testbed


def _as_bot(testbed: SlurmTestbed, *argv: str) -> str:
    return subprocess.check_output(testbed.as_bot(argv), text=True)


def test_slurm_runs_with_what_was_asked_for(unusual: SlurmTestbed) -> None:
    lines = unusual.run("scontrol", "show", "config").splitlines()
    pairs = (line.partition("=") for line in lines)
    shown = {name.strip(): value.strip() for name, _, value in pairs}

    assert (shown["ReturnToService"], shown["PrivateData"]) == ("0", "jobs")
    assert (shown["PreemptType"], shown["PreemptMode"]) == ("preempt/qos", "REQUEUE")


def test_an_operator_changes_a_job_and_drains_no_node(unusual: SlurmTestbed) -> None:
    job = unusual.submit("#!/bin/sh\n", "--hold")
    unusual.run_as(unusual.bot_user, "scontrol", "update", f"JobId={job}", "ExcNodeList=gpu-01")
    drain = ("scontrol", "update", "NodeName=gpu-01", "State=DRAIN", "Reason=look")

    assert unusual.job(job)["ExcNodeList"] == "gpu-01"
    with pytest.raises(TestbedError, match="Invalid user id"):
        unusual.run_as(unusual.bot_user, *drain)
    unusual.cancel(job)


def test_the_hidden_partition_is_listed_only_with_all(unusual: SlurmTestbed) -> None:
    argv = ("sinfo", "--noheader", "--format=%R")

    assert "hidden" not in unusual.run_as(unusual.options.job_user, *argv).split()
    assert "hidden" in _as_bot(unusual, *argv, "--all").split()


def test_a_job_of_the_high_qos_takes_the_node_of_another(unusual: SlurmTestbed) -> None:
    usual = unusual.queue_coupled("--nodes=1", "--partition=spare")
    unusual.wait_for_iteration(usual, 1)

    high = unusual.queue_coupled("--nodes=1", "--partition=spare", "--qos=high")
    unusual.wait_for_iteration(high, 1)

    assert unusual.job(usual.id)["Restarts"] == "1"
    assert unusual.job(usual.id)["JobState"] == "PENDING"
    unusual.cancel_all((usual.id, high.id))


def test_the_controller_comes_back_after_a_kill_and_hands_over_to_the_second(
    unusual: SlurmTestbed,
) -> None:
    job = unusual.train_coupled(("gpu-01", "gpu-02"))
    unusual.stop_controller()  # saves the job, which a kill within five seconds would lose
    unusual.start_controller()
    unusual.kill_controller()
    alive = job.iteration()
    unusual.wait_for_iteration(job, alive + 1)
    unusual.start_controller()
    unusual.wait_for_states("gpu-03", "IDLE")

    unusual.fail_over(forgetful=False)
    over = unusual.run("scontrol", "ping"), unusual.job(job.id)
    unusual.admin_drain("gpu-03", "told to the second")
    unusual.fail_back()
    unusual.wait_for_states("gpu-03", "IDLE", "DRAIN")

    assert "Slurmctld(primary) at ctl-1 is DOWN" in over[0]
    assert "Slurmctld(backup) at ctl-2 is UP" in over[0]
    assert (over[1]["JobState"], over[1]["Restarts"]) == ("RUNNING", "0")
    unusual.wait_for_iteration(job, alive + 2)
    unusual.cancel(job.id)
