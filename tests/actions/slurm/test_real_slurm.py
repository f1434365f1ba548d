"""The client against a running Slurm: what users write, and a controller that stands still."""

import re
import signal
from dataclasses import replace
from datetime import timedelta

import pytest

from actions.cluster import Job
from actions.contract import Rejected, WriteUnknown
from actions.shell import Command, CommandFinished, Runner
from actions.slurm.cli import SlurmCli
from actions.slurm.load import overload
from actions.slurm.rights import Rights, rights
from actions.slurm.tools import SlurmSettings, Tools
from bot.testbed import SlurmTestbed
from bot.testbed.commands import ask
from config.ids import ClusterName
from config.node_names import NodeName
from config.system_clock import SystemClock
from tests.actions.slurm.test_text_that_poses import POSING

pytestmark = pytest.mark.slurm

SLEEP = "#!/bin/sh\nsleep 1000\n"
REASON = "nw A1 [run-7/0a1b2c3d]"


@pytest.fixture
def settings(slurm_testbed: SlurmTestbed) -> SlurmSettings:
    return SlurmSettings(
        cluster=ClusterName(cluster_name(slurm_testbed)),
        slurm_conf=str(slurm_testbed.slurm_conf),
        own_user=slurm_testbed.bot_user,
        write_limit=timedelta(seconds=20),
    )


@pytest.fixture
def client(settings: SlurmSettings) -> SlurmCli:
    return SlurmCli(settings, Runner(), SystemClock(), lambda time: None)


def cluster_name(testbed: SlurmTestbed) -> str:
    lines = testbed.run("scontrol", "show", "config").splitlines()
    return next(line.split("=")[1].strip() for line in lines if line.startswith("ClusterName"))


def by_number(jobs: tuple[Job, ...]) -> dict[int, dict[str, object]]:
    return {job.slurm_id: {key: getattr(job, key) for key in Job.__slots__} for job in jobs}


def test_names_that_pose_as_fields_arrive_as_written_in_both_forms(
    slurm_testbed: SlurmTestbed, settings: SlurmSettings, client: SlurmCli
) -> None:
    names = [name for name in POSING if name != "(null)"]
    numbers = [
        slurm_testbed.submit(SLEEP, f"--job-name={name}", "--nodelist=gpu-11", "--partition=spare")
        for name in names
    ]
    numbers.append(slurm_testbed.submit(SLEEP, "--array=0-9%2", "--hold", "--exclude=gpu-01"))
    try:
        tools = Tools(settings, Runner())
        snapshot = client.snapshot()
        in_rows = {job.slurm_id: job for job in tools.jobs_on(NodeName("gpu-11"))}
        found = {job.slurm_id: job for job in snapshot.jobs}
        assert [found[number].name for number in numbers[:-1]] == names
        assert found[numbers[-1]].id == f"{numbers[-1]}_[0-9%2]"
        assert found[numbers[-1]].excluded_nodes == "gpu-01"
        for number in in_rows.keys() & found.keys():
            assert by_number((in_rows[number],)) == by_number((found[number],))
        assert all(job.nodes in {(), (NodeName("gpu-11"),)} for job in in_rows.values())
        assert snapshot.blind == ()
    finally:
        for number in numbers:
            slurm_testbed.cancel(number)


def test_a_drain_is_seen_with_its_reason_and_a_resume_clears_it(client: SlurmCli) -> None:
    node = NodeName("gpu-12")
    client.drain(node, REASON)
    seen = client.fresh_node(node)
    client.resume(node)
    assert (seen.state, seen.reason) == ("IDLE+DRAIN", REASON)
    assert not client.fresh_node(node).draining
    with pytest.raises(Rejected, match="Invalid node state"):
        client.resume(node)
    with pytest.raises(Rejected, match="Invalid node name"):
        client.drain(NodeName("gpu-77"), REASON)


class StoppingRunner(Runner):
    """Has the controller stand still from just before the write on."""

    def __init__(self, testbed: SlurmTestbed) -> None:
        super().__init__()
        self._testbed = testbed

    def run(self, command: Command) -> CommandFinished:
        if "update" in command.argv:
            signal_controller(self._testbed, signal.SIGSTOP)
        return super().run(command)


def signal_controller(testbed: SlurmTestbed, number: signal.Signals) -> None:
    ask(testbed.layout.main_socket, "signal", "slurmctld", number)


def test_a_write_to_a_controller_that_stands_still_is_unknown_and_did_happen(
    slurm_testbed: SlurmTestbed, settings: SlurmSettings, client: SlurmCli
) -> None:
    stopping = SlurmCli(settings, StoppingRunner(slurm_testbed), SystemClock(), lambda time: None)
    node = NodeName("gpu-12")
    try:
        with pytest.raises(WriteUnknown, match="gpu-12 may have happened"):
            stopping.drain(node, REASON)
    finally:
        signal_controller(slurm_testbed, signal.SIGCONT)
    slurm_testbed.wait_for(lambda: client.fresh_node(node).reason == REASON, "the late drain")
    client.resume(node)


def test_load_and_rights_have_the_form_that_is_read(
    slurm_testbed: SlurmTestbed, settings: SlurmSettings, client: SlurmCli
) -> None:
    controller = client.snapshot().controller
    assert controller.in_control
    assert not controller.backup
    assert client.remarks() == ()
    load = slurm_testbed.run("sdiag")
    assert overload(re.sub(r"(Server thread count: +)\d+", r"\g<1>200", load)).endswith(
        "(above 128)"
    )
    assert overload(re.sub(r"(Agent queue size: +)\d+", r"\g<1>900", load)).endswith("(above 500)")
    verbs = {"node.drain": False, "job.requeue": True}
    assert rights(settings, Runner(), verbs) == Rights()
    stranger = rights(replace(settings, own_user=slurm_testbed.options.job_user), Runner(), verbs)
    assert stranger.lacks.keys() == verbs.keys()
