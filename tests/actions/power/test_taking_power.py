"""When a machine loses its power and when never, verb by verb, over fakes."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from actions.cluster import NodeBase
from actions.contract import (
    Done,
    Failed,
    FailureKind,
    Observation,
    Refusal,
    Rejected,
    Standing,
    Unknown,
    Unreadable,
    WriteUnknown,
)
from actions.power.observe import ObservePower
from actions.power.unpowered import NoPower
from actions.power.verbs import CyclePower, GivePower, TakePower, actions
from actions.power_hands import PowerState
from actions.remote_values import Reach, Reachability
from actions.vantage import Answer
from config.permissions import Permission
from tests.actions.fakes import ALIVE, CLUSTER, HEALTHY, NODE, NOW, make_call, make_job, make_mark
from tests.actions.power.hands import BETWEEN, Scene, dead_node

OURS = dead_node(flags=frozenset({"NOT_RESPONDING", "DRAIN"}), reason="nw A1 [run-12/0a1b2c3d]")
DRAINED_AND_ALIVE = dead_node(
    base=NodeBase.IDLE, flags=frozenset({"DRAIN"}), reason="nw A1 [run-12/0a1b2c3d]"
)
MARKED = make_call(marks=(make_mark(),))


@pytest.fixture
def scene() -> Scene:
    return Scene()


def taken(scene: Scene) -> Observation:
    return TakePower(scene.hands).look(make_call())


def refused(scene: Scene) -> str:
    """Why neither the look nor the write does anything."""
    seen = taken(scene)
    assert seen.standing is Standing.BLOCKED
    done = TakePower(scene.hands).do(make_call())
    assert isinstance(done, Failed)
    assert done.kind is FailureKind.REFUSED
    assert scene.power.sent == []
    return seen.why


# -- off ----------------------------------------------------------------------------------------


def test_a_dead_host_loses_its_power_and_is_off_only_when_read_twice(scene: Scene) -> None:
    assert taken(scene).standing is Standing.NOT_SO
    done = TakePower(scene.hands).do(make_call())
    assert isinstance(done, Done)
    assert scene.power.sent == ["off gpu-01"]
    assert scene.pauses == [BETWEEN]
    assert (done.output["power"], done.output["before"]) == ("off", "on")
    assert str(done.output["power_evidence"]).startswith("off twice, 5 s apart")


def test_off_once_and_on_after_it_is_not_off(scene: Scene) -> None:
    on, off = PowerState.ON, PowerState.OFF
    scene.power.says = [on, off, on]
    done = TakePower(scene.hands).do(make_call())
    assert isinstance(done, Unknown)
    assert "off, and 5 s later on" in done.why


def test_a_bmc_that_does_nothing_is_not_believed(scene: Scene) -> None:
    scene.power.deaf = True
    assert isinstance(TakePower(scene.hands).do(make_call()), Unknown)


def test_a_bmc_that_contradicts_itself_is_waited_for_and_not_written_to(scene: Scene) -> None:
    scene.power.says = [PowerState.OFF, PowerState.ON]
    with pytest.raises(Unreadable, match="neither on nor off"):
        taken(scene)
    assert scene.power.sent == []


@pytest.mark.parametrize(
    "reach", [Reach.REFUSED, Reach.AUTH_FAILED, Reach.HOST_KEY_CHANGED, Reach.NO_SHELL]
)
def test_a_host_that_answers_in_any_way_keeps_its_power(scene: Scene, reach: Reach) -> None:
    scene.nodes.verdict = Reachability(reach=reach, evidence="it said so")
    assert "is alive, so its power stays" in refused(scene)


def test_no_drain_of_ours_makes_a_refusing_host_a_dead_one(scene: Scene) -> None:
    scene.cluster.nodes[NODE] = OURS
    scene.nodes.verdict = Reachability(reach=Reach.REFUSED, evidence="Connection refused")
    for verb in (TakePower(scene.hands), CyclePower(scene.hands)):
        assert verb.look(MARKED).standing is Standing.BLOCKED
        assert isinstance(verb.do(MARKED), Failed)
    assert scene.power.sent == []


def test_a_bot_that_is_cut_off_takes_no_power(scene: Scene) -> None:
    scene.places.reached = 0
    assert "none of its 3 reference hosts" in refused(scene)


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda scene: _places(scene, neighbour=Answer.ANSWERED), "is alive"),
        (lambda scene: _places(scene, neighbour=Answer.NOT_ASKED), "no other node could try"),
        (lambda scene: _places(scene, reached=1), "1 of 3 reference hosts"),
        (lambda scene: _reach(scene, Reach.NO_ROUTE), "no time-out"),
        (lambda scene: _reach(scene, Reach.NOT_ASKED), "dead is not shown (unknown)"),
        (lambda scene: scene.cluster.change(flags=frozenset()), "has not noticed"),
    ],
)
def test_a_silent_host_that_is_not_shown_to_be_dead_keeps_its_power(
    scene: Scene, change: Callable[[Scene], None], words: str
) -> None:
    change(scene)
    assert words in refused(scene)


def _places(scene: Scene, **changes: object) -> None:
    scene.places = replace(scene.places, **changes)  # type: ignore[arg-type]


def _reach(scene: Scene, reach: Reach) -> None:
    scene.nodes.verdict = Reachability(reach=reach, evidence="it said so")


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda scene: scene.cluster.foreign("NHC: gpu"), "hands off"),
        (lambda scene: scene.cluster.change(base=NodeBase.IDLE), "not drained by us or DOWN"),
        (lambda scene: scene.cluster.change(reason="dana: leave it"), "hands off"),
        (
            lambda scene: scene.cluster.change(flags=frozenset({"NOT_RESPONDING", "NEW_FLAG"})),
            "does not act on",
        ),
        (
            lambda scene: scene.cluster.change(
                flags=frozenset({"NOT_RESPONDING", "REBOOT_ISSUED"})
            ),
            "in a change of its own",
        ),
        (lambda scene: setattr(scene, "hands_off", "it is the controller"), "the controller"),
        (lambda scene: setattr(scene.cluster, "blind", "PrivateData"), "whose jobs end"),
        (
            lambda scene: scene.cluster.change(tres_allocated="cpu=64"),
            "no job is shown",
        ),
    ],
)
def test_a_node_that_is_not_ours_to_take_keeps_its_power(
    scene: Scene, change: Callable[[Scene], None], words: str
) -> None:
    change(scene)
    assert words in refused(scene)


def test_the_jobs_that_end_are_listed_as_lost(scene: Scene) -> None:
    scene.cluster.jobs = (make_job(), make_job(slurm_id=8, id="8", batch=False))
    losses = taken(scene).jobs_end
    assert [(found.slurm_id, found.comes_back, found.lost) for found in losses] == [
        (7, True, True),
        (8, False, True),
    ]


def test_a_job_that_goes_on_from_its_checkpoint_ends_without_losing_work(scene: Scene) -> None:
    scene.cluster.jobs = (make_job(comment="nw:restartable"),)
    (found,) = taken(scene).jobs_end
    assert (found.comes_back, found.lost) == (True, False)


def test_our_drain_that_slurmctld_may_forget_is_waited_for(scene: Scene) -> None:
    scene.cluster.nodes[NODE] = OURS
    young = make_call(marks=(make_mark(at=NOW - timedelta(seconds=9)),))
    with pytest.raises(Unreadable, match="may not have saved the drain"):
        TakePower(scene.hands).look(young)
    assert isinstance(TakePower(scene.hands).do(young), Failed)
    assert scene.power.sent == []
    assert TakePower(scene.hands).look(MARKED).standing is Standing.NOT_SO


def test_after_a_start_of_slurmctld_nothing_is_taken(scene: Scene) -> None:
    scene.cluster.started = NOW - timedelta(seconds=30)
    with pytest.raises(Unreadable, match="has just started"):
        taken(scene)


def test_a_reachable_host_loses_its_power_only_when_it_is_drained(scene: Scene) -> None:
    scene.cluster.nodes[NODE] = DRAINED_AND_ALIVE
    scene.nodes.verdict, scene.nodes.facts = ALIVE, HEALTHY
    assert TakePower(scene.hands).look(MARKED).standing is Standing.NOT_SO
    scene.cluster.jobs = (make_job(),)
    seen = TakePower(scene.hands).look(MARKED)
    assert seen.standing is Standing.BLOCKED
    assert "not drained yet" in seen.why


def test_a_machine_that_is_off_already_gets_no_request(scene: Scene) -> None:
    scene.power.state = PowerState.OFF
    assert taken(scene).standing is Standing.FOREIGN
    recovered = TakePower(scene.hands).look(make_call(intended_at=NOW))
    assert recovered.standing is Standing.OURS
    assert scene.pauses == [BETWEEN, BETWEEN]
    assert scene.power.sent == []


def test_a_bmc_of_another_machine_is_noticed(scene: Scene) -> None:
    scene.power.state = PowerState.OFF
    scene.nodes.verdict, scene.nodes.facts = ALIVE, HEALTHY
    assert "the BMC of another machine" in refused(scene)


def test_a_plan_for_a_host_without_a_boot_id_says_unknown(scene: Scene) -> None:
    assert taken(scene).boot_id == "unknown"
    scene.cluster.nodes[NODE] = DRAINED_AND_ALIVE
    scene.nodes.verdict, scene.nodes.facts = ALIVE, HEALTHY
    assert TakePower(scene.hands).look(MARKED).boot_id == HEALTHY.boot_id


@pytest.mark.parametrize(
    "error, kind",
    [
        (Rejected("HTTP 400"), FailureKind.PERMANENT),
        (Refusal("not let in"), FailureKind.REFUSED),
        (Unreadable("no connection"), FailureKind.RETRYABLE),
    ],
)
def test_a_request_that_did_nothing_has_failed(
    scene: Scene, error: Exception, kind: FailureKind
) -> None:
    scene.power.deaf, scene.power.error = True, error
    done = TakePower(scene.hands).do(make_call())
    assert isinstance(done, Failed)
    assert done.kind is kind


def test_a_request_that_may_have_happened_is_unknown(scene: Scene) -> None:
    scene.power.error = WriteUnknown("no answer")
    assert isinstance(TakePower(scene.hands).do(make_call()), Unknown)


def test_without_a_section_power_everything_stops_at_a_person(scene: Scene) -> None:
    hands = replace(scene.hands, power=NoPower())
    for verb in (TakePower(hands), GivePower(hands), CyclePower(hands)):
        with pytest.raises(Refusal, match="a person must see to the power"):
            verb.look(make_call())


# -- on and cycle -------------------------------------------------------------------------------


def test_power_is_given_only_to_a_node_that_we_drained(scene: Scene) -> None:
    scene.power.state = PowerState.OFF
    seen = GivePower(scene.hands).look(make_call())
    assert seen.standing is Standing.BLOCKED
    assert "not drained by us" in seen.why
    scene.cluster.nodes[NODE] = OURS
    assert GivePower(scene.hands).look(MARKED).standing is Standing.NOT_SO
    done = GivePower(scene.hands).do(MARKED)
    assert isinstance(done, Done)
    assert (done.output["power"], scene.power.sent) == ("on", ["on gpu-01"])
    assert GivePower(scene.hands).look(MARKED).standing is Standing.FOREIGN


def test_a_bot_that_is_cut_off_gives_no_power(scene: Scene) -> None:
    scene.power.state, scene.places.reached = PowerState.OFF, 0
    scene.cluster.nodes[NODE] = OURS
    assert GivePower(scene.hands).look(MARKED).standing is Standing.BLOCKED
    assert isinstance(GivePower(scene.hands).do(MARKED), Failed)
    assert scene.power.sent == []


def test_a_cycle_needs_our_drain_because_a_host_that_boots_makes_its_node_idle(
    scene: Scene,
) -> None:
    assert CyclePower(scene.hands).look(make_call()).standing is Standing.BLOCKED
    scene.cluster.nodes[NODE] = OURS
    assert CyclePower(scene.hands).look(MARKED).standing is Standing.NOT_SO
    assert isinstance(CyclePower(scene.hands).do(MARKED), Done)
    assert scene.power.sent == ["cycle gpu-01"]


def test_a_machine_that_is_off_is_not_cycled(scene: Scene) -> None:
    scene.cluster.nodes[NODE], scene.power.state = OURS, PowerState.OFF
    seen = CyclePower(scene.hands).look(MARKED)
    assert seen.standing is Standing.BLOCKED
    assert "power.on gives it power" in seen.why


def test_a_cycle_whose_answer_is_lost_is_unknown(scene: Scene) -> None:
    scene.cluster.nodes[NODE], scene.power.error = OURS, WriteUnknown("no answer")
    assert isinstance(CyclePower(scene.hands).do(MARKED), Unknown)


# -- contracts and looks ------------------------------------------------------------------------


def test_every_verb_that_switches_needs_two_persons_and_its_own_permission(scene: Scene) -> None:
    specs = {verb.spec.name: verb.spec for verb in actions(scene.hands)}
    assert set(specs) >= {"power.observe", "power.off", "power.on", "power.cycle", "node.down"}
    for name in set(specs) - {"power.observe"}:
        assert (specs[name].permission, specs[name].persons) == (Permission.NODE_POWER, 2)
    assert specs["power.off"].may_end_jobs
    assert specs["power.cycle"].may_end_jobs
    assert not specs["power.cycle"].observable
    assert specs["power.observe"].looks_only


def test_fenced_is_off_twice_and_no_answer_from_the_host(scene: Scene) -> None:
    found = ObservePower(scene.hands).do(make_call())
    assert isinstance(found, Done)
    assert (found.output["power"], found.output["fenced"]) == ("on", False)
    assert (found.output["host_verdict"], found.output["event_log"]) == ("dead", "PSU 1 lost")
    scene.power.state = PowerState.OFF
    found = ObservePower(scene.hands).do(make_call())
    assert isinstance(found, Done)
    assert found.output["fenced"] is True
    scene.nodes.verdict = ALIVE
    found = ObservePower(scene.hands).do(make_call())
    assert isinstance(found, Done)
    assert found.output["fenced"] is False


def test_a_bot_that_is_cut_off_calls_nothing_fenced(scene: Scene) -> None:
    scene.power.state, scene.places.reached = PowerState.OFF, 0
    found = ObservePower(scene.hands).do(make_call())
    assert isinstance(found, Done)
    assert (found.output["host_verdict"], found.output["fenced"]) == ("cut_off", False)
    assert "no diagnosis of gpu-01" in refused(scene)


def test_a_bmc_without_an_answer_is_unknown_and_not_off(scene: Scene) -> None:
    scene.power.unread = Unreadable("no answer")
    assert isinstance(ObservePower(scene.hands).do(make_call()), Unknown)


def test_a_cluster_that_is_not_configured_is_refused(scene: Scene) -> None:
    hands = replace(scene.hands, clusters={})
    assert CLUSTER not in hands.clusters
    with pytest.raises(Refusal, match="no cluster main"):
        TakePower(hands).look(make_call())
