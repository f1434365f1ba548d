"""The BMCs of the simulated cluster: power that takes time to boot, answers that lie, places that see."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from actions.contract import Rejected, Unreadable, WriteUnknown
from actions.power_hands import PowerState
from actions.remote_values import Reach
from actions.simulated.client import Line, SimulatedCluster
from actions.simulated.machines import BmcMood
from actions.simulated.plugs import Plugs
from actions.simulated.power import SimulatedPower, SimulatedVantage
from actions.simulated.server import SimulationServer
from actions.simulated.stage import Stage
from actions.simulated.writes import FaultKind, WriteVerb
from actions.vantage import Answer
from config.ids import ClusterName
from tests.actions.simulated.small import N5, N6, small_world

ON, OFF = PowerState.ON, PowerState.OFF
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rack:
    """The machines, and what can be done to them."""

    power: SimulatedPower
    vantage: SimulatedVantage
    cluster: SimulatedCluster
    plugs: Plugs


@pytest.fixture
def rack() -> Iterator[Rack]:
    with tempfile.TemporaryDirectory(prefix="nws-") as folder:
        path = Path(folder) / "s"
        line = Line(path=path)
        with SimulationServer(Stage(small_world()), path):
            yield Rack(
                power=SimulatedPower(line=line),
                vantage=SimulatedVantage(line=line),
                cluster=SimulatedCluster(name=ClusterName("sim"), line=line),
                plugs=Plugs(path=path),
            )


def test_power_comes_back_at_once_and_the_host_after_its_boot(rack: Rack) -> None:
    rack.power.off(N5, "e1")
    assert rack.power.status(N5).state is OFF
    rack.plugs.forward(10 * MINUTE)
    assert not rack.cluster.fresh_node(N5).responding
    rack.power.on(N5, "e2")
    assert rack.power.status(N5).state is ON
    assert rack.vantage.from_node(N6, N5, "").answer is Answer.SILENT
    rack.plugs.forward(5 * MINUTE)
    assert rack.vantage.from_node(N6, N5, "").answer is Answer.ANSWERED
    assert rack.cluster.fresh_node(N5).responding


def test_power_that_goes_again_during_the_boot_keeps_the_host_off(rack: Rack) -> None:
    rack.power.cycle(N5, "e1")
    rack.power.off(N5, "e2")
    rack.plugs.forward(10 * MINUTE)
    assert rack.power.status(N5).state is OFF
    assert rack.vantage.from_node(N6, N5, "").answer is Answer.SILENT


@pytest.mark.parametrize(
    "mood, said",
    [(BmcMood.SAYS_OFF, [OFF, OFF]), (BmcMood.FLICKERS, [OFF, ON]), (BmcMood.HONEST, [ON, ON])],
)
def test_a_bmc_can_lie_about_a_machine_that_runs(
    rack: Rack, mood: BmcMood, said: list[PowerState]
) -> None:
    rack.plugs.pull("set_bmc", node=N5, mood=mood)
    assert [rack.power.status(N5).state for _ in said] == said


def test_a_bmc_can_be_silent_refuse_or_do_nothing(rack: Rack) -> None:
    rack.plugs.pull("set_bmc", node=N5, mood=BmcMood.SILENT)
    with pytest.raises(Unreadable):
        rack.power.status(N5)
    with pytest.raises(Unreadable, match="nothing was sent"):
        rack.power.off(N5, "e1")
    with pytest.raises(Unreadable):
        rack.power.event_log(N5)
    rack.plugs.pull("set_bmc", node=N5, mood=BmcMood.REFUSES)
    with pytest.raises(Rejected):
        rack.power.off(N5, "e2")
    rack.plugs.pull("set_bmc", node=N5, mood=BmcMood.DEAF)
    rack.power.off(N5, "e3")
    assert rack.power.status(N5).state is ON
    assert rack.power.event_log(N5).endswith("power_off over the network")


def test_a_lost_answer_is_unknown_and_the_power_gone(rack: Rack) -> None:
    rack.plugs.fail_next(FaultKind.APPLIED_NO_ANSWER, WriteVerb.POWER_OFF)
    with pytest.raises(WriteUnknown):
        rack.power.off(N5, "e1")
    assert rack.power.status(N5).state is OFF


def test_a_path_that_is_broken_for_the_bot_alone_is_seen_from_elsewhere(rack: Rack) -> None:
    rack.plugs.pull("set_shell", node=N5, reach=Reach.TIME_OUT)
    assert rack.vantage.from_bot(N5, "").answer is Answer.SILENT
    assert rack.vantage.from_node(N6, N5, "").answer is Answer.ANSWERED
    rack.plugs.pull("cut_off", node=N6)
    assert rack.vantage.from_node(N6, N5, "").answer is Answer.NOT_ASKED
