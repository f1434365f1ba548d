"""Fencing on a real Slurm: a link is cut while a rank writes; BMCs that speak Redfish switch the machine."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from actions.contract import Call, Done, Failed, Standing
from actions.host_look import Eyes
from actions.power.hands import Hands, PowerSettings
from actions.power.https import Line
from actions.power.observe import ObservePower
from actions.power.redfish import Redfish
from actions.power.verbs import CyclePower, TakePower
from actions.remote.nodes import RemoteNodes
from actions.remote.settings import RemoteSettings
from actions.remote.vantage import RemoteVantage
from actions.shell import Runner
from actions.slurm.cli import SlurmCli
from actions.slurm.tools import SlurmSettings
from bot.testbed import SlurmTestbed, TestbedOptions
from bot.testbed.redfish import BmcFault, BmcRack
from config.ids import ClusterName
from config.node_access import NodeAccess
from config.node_names import NodeName
from config.secret_store import SecretStore
from config.secrets import SecretRef
from config.system_clock import SystemClock
from tests.actions.fakes import make_call
from tests.testbed.fixture import fresh_folder

pytestmark = pytest.mark.slurm

NODES = ("gpu-01", "gpu-02", "gpu-03", "gpu-04")


@pytest.fixture(scope="module")
def testbed() -> Iterator[SlurmTestbed]:
    """Four nodes that are DOWN soon after they fall silent."""
    if why := SlurmTestbed.missing():
        pytest.skip(why)
    options = TestbedOptions(slurmd_timeout=6)
    with fresh_folder() as folder, SlurmTestbed(folder, nodes=4, options=options) as running:
        yield running


@pytest.fixture(scope="module")
def rack(testbed: SlurmTestbed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BmcRack]:
    with BmcRack(testbed, NODES, tmp_path_factory.mktemp("bmc")) as started:
        yield started


@pytest.fixture(scope="module")
def hands(testbed: SlurmTestbed, rack: BmcRack) -> Iterator[Hands]:
    with eyes_on(testbed) as eyes:
        name = ClusterName("sandbox")
        slurm = SlurmSettings(
            cluster=name, slurm_conf=str(testbed.slurm_conf), own_user=testbed.bot_user
        )
        power = Redfish(
            line=Line(ca_file=rack.ca_file, limit=timedelta(seconds=20)),
            bmc=lambda node: rack.bmcs[node].address if node in rack.bmcs else "",
            user=rack.user,
            password=SecretRef("env:BMC"),
            secrets=SecretStore({"BMC": rack.password}),
        )
        yield Hands(
            clusters={name: SlurmCli(slurm, Runner(), SystemClock(), lambda _: None)},
            eyes=eyes,
            power=power,
            settings=PowerSettings(
                hands_off=lambda *_: "",
                quiet_after_start=timedelta(0),
                between_readings=timedelta(seconds=1),
            ),
            pause=lambda span: time.sleep(span.total_seconds()),
        )


@contextmanager
def eyes_on(testbed: SlurmTestbed) -> Iterator[Eyes]:
    """The bot's host, and every node that it reaches."""
    layout = testbed.layout
    settings = RemoteSettings(
        ssh_config=testbed.ssh_config,
        connect_limit=timedelta(seconds=3),
        access=NodeAccess.SUDO,
    )
    nodes = RemoteNodes(
        settings, Runner(), SystemClock(), redact=lambda text: text, connected=lambda: True
    )
    vantage = RemoteVantage(
        known_ports=(layout.ssh_port,),
        reference_hosts=(
            f"{layout.controller_address}:{layout.controller_port}",
            f"{layout.controller_address}:{layout.accounting_port}",
            f"{layout.address('gpu-04')}:{layout.ssh_port}",
        ),
        tried_by=nodes.ports_tried,
    )
    try:
        yield Eyes(nodes=nodes, vantage=vantage)
    finally:
        nodes.close()


def call_for(node: str) -> Call:
    name = NodeName(node)
    call = make_call(arguments={"node": node})
    return replace(call, cluster=ClusterName("sandbox"), node=name, now=SystemClock().now().wall)


def given_up(testbed: SlurmTestbed, node: str) -> None:
    testbed.wait_for(
        lambda: testbed.node_states(node) >= {"DOWN", "NOT_RESPONDING"}, f"{node} to be given up"
    )


def test_a_rank_behind_a_cut_link_writes_until_its_power_was_read_off_twice(
    testbed: SlurmTestbed, rack: BmcRack, hands: Hands
) -> None:
    job = testbed.queue_coupled("--nodes=1", "--exclude=gpu-04")
    testbed.wait_for_iteration(job, 1)
    sick = testbed.job(job.id)["NodeList"]
    seen = TakePower(hands).look(call_for(sick))
    assert seen.standing is Standing.BLOCKED, "it answers and works"

    testbed.cut_link(sick)
    given_up(testbed, sick)
    written = job.entries()[-1].step
    testbed.wait_for(lambda: job.entries()[-1].step > written, "the old rank to write on")
    done = TakePower(hands).do(call_for(sick))
    fenced = time.time()

    assert isinstance(done, Done), done
    assert str(done.output["power_evidence"]).startswith("off twice")
    assert (testbed.power(sick), rack.bmcs[sick].resets) == ("off", ["ForceOff"])
    after = ObservePower(hands).do(call_for(sick))
    assert isinstance(after, Done)
    assert after.output["fenced"] is True
    assert not [entry for entry in job.entries() if entry.host == sick and entry.time > fenced]
    testbed.cancel(job.id)


def test_a_host_that_lives_in_any_way_keeps_its_power(
    testbed: SlurmTestbed, rack: BmcRack, hands: Hands
) -> None:
    node = "gpu-03"
    testbed.kill_slurmd(node)
    given_up(testbed, node)
    met = []
    for fault, repair in (
        (testbed.stop_sshd, testbed.start_sshd),
        (testbed.hang_sshd, testbed.wake_sshd),
        (testbed.change_host_key, None),
    ):
        fault(node)
        done = TakePower(hands).do(call_for(node))
        assert isinstance(done, Failed)
        met.append(done.error)
        if repair is not None:
            repair(node)
    assert isinstance(CyclePower(hands).do(call_for(node)), Failed)
    assert ["refused" in met[0], "it answers the bot" in met[1], "host_key" in met[2]] == [True] * 3
    assert rack.bmcs[node].resets == []


def test_a_bot_whose_uplink_is_cut_switches_nothing(
    testbed: SlurmTestbed, rack: BmcRack, hands: Hands
) -> None:
    node = "gpu-04"
    testbed.cut_bot_uplink()
    try:
        assert isinstance(TakePower(hands).do(call_for(node)), Failed)
    finally:
        testbed.restore_bot_uplink()
    assert rack.bmcs[node].resets == []


def test_a_bmc_that_lies_is_caught_by_the_host_that_answers(
    testbed: SlurmTestbed, rack: BmcRack, hands: Hands
) -> None:
    node = "gpu-04"
    rack.bmcs[node].fault = BmcFault.LIES
    try:
        seen = TakePower(hands).look(call_for(node))
    finally:
        rack.bmcs[node].fault = BmcFault.NONE
    assert seen.standing is Standing.BLOCKED
    assert "the BMC of another machine, or it lies" in seen.why
