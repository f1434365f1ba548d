"""Node access on the nodes of a real Slurm: facts, a dead slurmd, and each way to be unreachable."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from actions.remote.nodes import RemoteNodes
from actions.remote.settings import RemoteSettings
from actions.remote_values import Reach, ServiceState
from actions.shell import Runner
from bot.testbed import SlurmTestbed
from config.node_access import NodeAccess
from config.node_names import NodeName
from config.system_clock import SystemClock
from tests.patience import DEADLINE

pytestmark = pytest.mark.slurm

A, B = NodeName("gpu-03"), NodeName("gpu-04")


@contextmanager
def hands_on(testbed: SlurmTestbed, limit: timedelta) -> Iterator[RemoteNodes]:
    """Hands that give up after this time."""
    settings = RemoteSettings(
        ssh_config=testbed.ssh_config, connect_limit=limit, access=NodeAccess.SUDO
    )
    hands = RemoteNodes(
        settings, Runner(), SystemClock(), redact=lambda text: text, connected=lambda: True
    )
    try:
        yield hands
    finally:
        hands.close()


@pytest.fixture
def nodes(slurm_testbed: SlurmTestbed) -> Iterator[RemoteNodes]:
    with hands_on(slurm_testbed, timedelta(seconds=DEADLINE)) as hands:
        yield hands


def test_a_visit_reads_boot_gpus_and_faults(
    slurm_testbed: SlurmTestbed, nodes: RemoteNodes
) -> None:
    xid = "[1] NVRM: Xid (PCI:0000:4a:00): 79, GPU has fallen off the bus."
    slurm_testbed.write_kernel_log(A, f"[0] quiet\n{xid}\n")
    slurm_testbed.set_gpus_seen(A, 7)
    try:
        facts = nodes.host_facts(A)
    finally:
        slurm_testbed.set_gpus_seen(A, 8)
        slurm_testbed.write_kernel_log(A, "")
    assert (facts.boot_id, facts.gpus_seen) == (slurm_testbed.boot_id(A), 7)
    assert facts.kernel_tail == xid
    assert facts.not_read == ("previous",)


def test_a_dead_slurmd_is_seen_started_and_restarted(
    slurm_testbed: SlurmTestbed, nodes: RemoteNodes
) -> None:
    slurm_testbed.kill_slurmd(A)
    dead = nodes.service(A, "slurmd")
    assert (dead.state, dead.main_pid) == (ServiceState.FAILED, 0)
    assert dead.since is not None
    assert nodes.start_service(A, "slurmd", "nw-0a1b2c3d-run-1-start-1").ok
    started = nodes.service(A, "slurmd")
    assert (started.state, started.kill_mode) == (ServiceState.ACTIVE, "process")
    assert nodes.restart_service(A, "slurmd", "nw-0a1b2c3d-run-1-again-1").ok
    again = nodes.service(A, "slurmd")
    assert again.main_pid not in {0, started.main_pid}


@pytest.mark.parametrize(
    ("fault", "repair", "verdict"),
    [
        ("stop_sshd", "start_sshd", Reach.REFUSED),
        ("hang_sshd", "wake_sshd", Reach.TIME_OUT),
        ("refuse_key", "restore_sshd", Reach.AUTH_FAILED),
        ("change_host_key", "", Reach.HOST_KEY_CHANGED),
        ("hang_shell", "restore_sshd", Reach.NO_SHELL),
    ],
)
def test_each_way_to_be_unreachable_has_its_verdict(
    fault: str, repair: str, verdict: Reach, slurm_testbed: SlurmTestbed, nodes: RemoteNodes
) -> None:
    never_answers = verdict in {Reach.TIME_OUT, Reach.NO_SHELL}
    limit = timedelta(seconds=3 if never_answers else DEADLINE)
    getattr(slurm_testbed, fault)(B)
    try:
        with hands_on(slurm_testbed, limit) as hands:
            found = hands.reach(B)
    finally:
        if repair:
            getattr(slurm_testbed, repair)(B)
        slurm_testbed.trust_host_keys()
    assert found.reach is verdict
    assert nodes.reach(B).reach is Reach.ALIVE
