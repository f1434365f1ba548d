"""slurmd restarted under a job of a real Slurm, by sudo: only where everything was read and fits."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from actions.contract import Call, Done, Failed, Standing
from actions.remote.nodes import RemoteNodes
from actions.remote.settings import RemoteSettings
from actions.service.settings import Hands, ServiceSettings
from actions.service.verbs import Restart
from actions.shell import Runner
from actions.slurm.cli import SlurmCli
from actions.slurm.tools import SlurmSettings
from bot.testbed import SlurmTestbed
from bot.testbed.root_access import root_of
from config.ids import ClusterName
from config.node_access import NodeAccess
from config.node_names import NodeName
from config.system_clock import SystemClock
from tests.actions.fakes import make_call
from tests.patience import DEADLINE

pytestmark = pytest.mark.slurm

NODE = NodeName("gpu-09")


@pytest.fixture
def hands(slurm_testbed: SlurmTestbed) -> Iterator[Hands]:
    runner, clock = Runner(), SystemClock()
    name = ClusterName(slurm_testbed.options.cluster)
    slurm = SlurmSettings(
        cluster=name,
        slurm_conf=str(slurm_testbed.slurm_conf),
        own_user=slurm_testbed.bot_user,
    )
    remote = RemoteSettings(
        ssh_config=slurm_testbed.ssh_config,
        connect_limit=timedelta(seconds=DEADLINE),
        access=NodeAccess.SUDO,
    )
    nodes = RemoteNodes(remote, runner, clock, redact=str, connected=lambda: True)
    yield Hands(
        clusters={name: SlurmCli(slurm, runner, clock, lambda _time: None)},
        nodes=nodes,
        settings=ServiceSettings(
            units=frozenset({"slurmd"}),
            hands_off=lambda _cluster, _node: "",
            quiet_after_start=timedelta(0),
        ),
    )
    nodes.close()


def _call(testbed: SlurmTestbed, attempt: int) -> Call:
    return make_call(
        cluster=ClusterName(testbed.options.cluster),
        node=NODE,
        arguments={"node": NODE, "unit": "slurmd"},
        now=SystemClock().now().wall,
        attempt=attempt,
    )


@contextmanager
def _without_munge(testbed: SlurmTestbed) -> Iterator[None]:
    conf = root_of(testbed.layout, NODE) / "etc/nodewarden/helper.conf"
    before = conf.read_text()
    conf.write_text(before.replace("munge.socket", "no-such.socket"))
    yield
    conf.write_text(before)


def test_a_restart_spares_the_job_and_is_refused_where_the_node_would_not_come_back(
    slurm_testbed: SlurmTestbed, hands: Hands
) -> None:
    verb, unit = Restart(hands), slurm_testbed.unit(NODE)
    job = slurm_testbed.train([NODE], "--partition=short")
    try:
        slurm_testbed.set_memory_seen(NODE, 256_000)
        less = verb.look(_call(slurm_testbed, 1))
        slurm_testbed.set_memory_seen(NODE)
        with _without_munge(slurm_testbed):
            mute = verb.look(_call(slurm_testbed, 1))
            refused = verb.do(_call(slurm_testbed, 1))
        untouched = slurm_testbed.unit(NODE)["pid"]
        fit = verb.look(_call(slurm_testbed, 2))
        done = verb.do(_call(slurm_testbed, 2))
        slurm_testbed.wait_for_next_step(job, NODE)
        facts = slurm_testbed.job(job.id)
    finally:
        slurm_testbed.cancel(job.id)
    assert less.standing is mute.standing is Standing.BLOCKED
    assert "256000 of 512000 MiB" in less.why
    assert "munge on gpu-09" in mute.why
    assert isinstance(refused, Failed)
    assert untouched == unit["pid"]
    assert fit.standing is Standing.NOT_SO, fit.why
    assert isinstance(done, Done), done
    assert slurm_testbed.unit(NODE)["pid"] not in {0, untouched}
    assert (facts["JobState"], facts["Restarts"]) == ("RUNNING", "0")
