"""The verbs on the simulated cluster: a dead slurmd is repaired in time, a drain goes there and back."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from actions.contract import Action, Call, Done, Failed, Mark, Standing, Wait
from actions.node.settings import Hands, NodeSettings
from actions.node.verbs import actions as node_actions
from actions.service.settings import Hands as ServiceHands
from actions.service.settings import ServiceSettings
from actions.service.verbs import actions as service_actions
from actions.simulated.client import Line, SimulatedCluster, SimulatedNodes
from actions.simulated.plugs import Plugs
from actions.simulated.server import SimulationServer
from actions.simulated.stage import Stage
from actions.simulated.writes import When
from config.ids import ClusterName
from config.json_values import Json
from config.node_names import NodeName
from config.policy import Autonomy
from runbooks.causes import load_causes
from runbooks.diagnosis import diagnose
from runbooks.library_files import SHIPPED
from tests.actions.fakes import make_call
from tests.actions.simulated.small import N1, N2, N5, small_world

_CAUSES_FILE = SHIPPED / "causes/node-dropped/v1.yaml"
CAUSES = load_causes(_CAUSES_FILE.read_text(encoding="utf-8"), "node-dropped/v1.yaml")
SIM = ClusterName("sim")
FEW_MINUTES = timedelta(minutes=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """The verbs, and the plugs of the cluster that they act on."""

    verbs: dict[str, Action]
    cluster: SimulatedCluster
    plugs: Plugs

    def call(self, node: NodeName, **arguments: Json) -> Call:
        call = make_call(arguments={**arguments, "node": node})
        return replace(call, cluster=SIM, node=node, now=self.plugs.now())

    def foreign_drain(self, node: str, reason: str) -> dict[str, object]:
        return {"plug": "admin_drain", "node": node, "reason": reason, "by": "dana"}


@pytest.fixture
def play() -> Iterator[Play]:
    with tempfile.TemporaryDirectory(prefix="nws-") as folder:
        path = Path(folder) / "s"
        line = Line(path=path)
        cluster, nodes = SimulatedCluster(name=SIM, line=line), SimulatedNodes(line=line)
        node_settings = NodeSettings(
            hands_off=lambda _cluster, _node: "",
            pool=lambda _cluster, _node: frozenset(cluster.snapshot().nodes),
        )
        service_settings = ServiceSettings(
            units=frozenset({"slurmd"}), hands_off=lambda _cluster, _node: ""
        )
        verbs = (
            *node_actions(Hands(clusters={SIM: cluster}, nodes=nodes, settings=node_settings)),
            *service_actions(
                ServiceHands(clusters={SIM: cluster}, nodes=nodes, settings=service_settings)
            ),
        )
        with SimulationServer(Stage(small_world()), path):
            plugs = Plugs(path=path)
            plugs.forward(FEW_MINUTES)
            yield Play(verbs={verb.spec.name: verb for verb in verbs}, cluster=cluster, plugs=plugs)


def test_a_dead_slurmd_is_started_before_its_job_dies(play: Play) -> None:
    play.plugs.pull("kill_slurmd", node=N1)
    play.plugs.forward(FEW_MINUTES)
    facts = play.verbs["node.observe"].do(play.call(N1))
    assert isinstance(facts, Done)
    assert (facts.output["slurmd_state"], facts.output["responding"]) == ("failed", False)
    assert facts.output["dies_at_earliest"]
    assert facts.output["boot_changed"] is False
    decided = diagnose(CAUSES, facts.output).decided
    assert decided is not None
    assert (decided.id, decided.autonomy) == ("A1", Autonomy.ACT)
    start = play.verbs["service.start"]
    assert start.look(play.call(N1, unit="slurmd")).standing is Standing.NOT_SO
    assert isinstance(start.do(play.call(N1, unit="slurmd")), Done)
    play.plugs.forward(FEW_MINUTES)
    heard = play.verbs["node.await"].do(play.call(N1, condition="responding"))
    assert isinstance(heard, Done)
    job = next(each for each in play.cluster.snapshot().jobs if each.slurm_id == 10)
    assert (job.state, job.restarts, job.nodes) == ("RUNNING", 0, (N1, N2))


def test_the_job_dies_in_the_window_that_the_facts_name(play: Play) -> None:
    play.plugs.pull("kill_slurmd", node=N1)
    facts = play.verbs["node.observe"].do(play.call(N1))
    assert isinstance(facts, Done)
    second = timedelta(seconds=1)
    for _ in range(900):
        if play.cluster.fresh_node(N1).base.value == "DOWN":
            break
        play.plugs.forward(second)
    died = f"{play.plugs.now():%Y-%m-%dT%H:%MZ}"
    assert str(facts.output["dies_at_earliest"]) <= died <= str(facts.output["dies_at_latest"])


def test_a_drain_goes_there_and_back(play: Play) -> None:
    drain, back = play.verbs["node.drain"], play.verbs["node.return"]
    seen = drain.look(play.call(N5))
    assert seen.standing is Standing.NOT_SO
    done = drain.do(play.call(N5))
    assert isinstance(done, Done)
    mark = Mark(
        kind="drain",
        cluster=SIM,
        node=N5,
        run=play.call(N5).run,
        boot_id=seen.boot_id,
        text=done.mark_text,
        at=play.plugs.now(),
    )
    call = replace(play.call(N5), marks=(mark,))
    assert back.look(call).standing is Standing.NOT_SO
    assert isinstance(back.do(call), Done)
    assert not play.cluster.fresh_node(N5).draining


def test_a_node_that_lost_a_gpu_is_not_returned(play: Play) -> None:
    seen = play.verbs["node.drain"].look(play.call(N5))
    done = play.verbs["node.drain"].do(play.call(N5))
    assert isinstance(done, Done)
    play.plugs.pull("shrink_gpus", node=N5, present=7)
    mark = Mark(
        kind="drain",
        cluster=SIM,
        node=N5,
        run=play.call(N5).run,
        boot_id=seen.boot_id,
        text=done.mark_text,
        at=play.plugs.now(),
    )
    back = play.verbs["node.return"].look(replace(play.call(N5), marks=(mark,)))
    assert back.standing is Standing.BLOCKED
    assert "7 of 8" in back.why


def test_who_takes_the_node_over_after_our_write_keeps_it(play: Play) -> None:
    play.plugs.at_next_write(When.AFTER, play.foreign_drain(N5, "RMA 4711"))
    outcome = play.verbs["node.drain"].do(play.call(N5))
    assert isinstance(outcome, Failed)
    assert play.cluster.fresh_node(N5).reason == "RMA 4711"


def test_draining_a_busy_node_waits_for_its_job(play: Play) -> None:
    assert isinstance(play.verbs["node.drain"].do(play.call(N1)), Done)
    outcome = play.verbs["node.await"].do(play.call(N1, condition="drained"))
    assert isinstance(outcome, Wait)
    job = next(each for each in play.cluster.snapshot().jobs if each.slurm_id == 10)
    assert job.state == "RUNNING"
