"""The sweep can be believed: kills are kills, pauses are as good as kills, acts do happen."""

from actions.simulated.writes import When, Write, WriteVerb
from config.node_names import NodeName
from tests.sweep.crash import Sweep, points
from tests.sweep.mortal import Moment, Point, Sort
from tests.sweep.other_operator import OtherOperator, Where
from tests.sweep.scenarios import SCENARIOS
from tests.sweep.theatre import Stops, Theatre


def test_what_a_pause_shows_is_what_a_kill_in_the_same_place_leaves(stage: Theatre) -> None:
    sweep = Sweep(stage, SCENARIOS["drain-approved"])
    paused: list[object] = []
    stage.put(sweep.start)
    stops = Stops(wanted=_commits, meanwhile=lambda: paused.append(stage.keep().key))
    stage.must_live(sweep.scenario, sweep.play, stops)
    killed = [
        sweep.killed(sweep.start, point).key for point, _ in points(sweep.labels) if _commits(point)
    ]
    assert killed == paused
    assert not sweep.swept.failures
    assert len(set(killed)) > len(killed) / 3, "most of them are places of their own"


def test_a_write_within_which_the_bot_dies_happens_now_later_or_never(stage: Theatre) -> None:
    sweep = Sweep(stage, SCENARIOS["drain-approved"])
    drained = {}
    for moment in Moment:
        sweep.killed(sweep.start, Point(sort=Sort.WRITE, number=0, moment=moment))
        at_once = len(stage.effects())
        stage.settle()
        drained[moment] = (at_once, len(stage.effects()))
    assert drained == {
        Moment.BEFORE: (0, 0),
        Moment.NOW: (1, 1),
        Moment.SOON: (0, 1),
        Moment.LATE: (0, 1),
        Moment.NEVER: (0, 0),
        Moment.AFTER: (1, 1),
    }


def test_a_state_that_is_put_back_is_the_same_state(stage: Theatre) -> None:
    kept = stage.begin(SCENARIOS["return-node"])
    stage.pull({"plug": "kill_slurmd", "node": "gpu-3"})
    assert stage.keep().key != kept.key
    stage.put(kept)
    assert stage.keep().key == kept.key


def test_an_act_at_a_write_falls_between_the_last_look_and_the_write(stage: Theatre) -> None:
    operator = OtherOperator(stage, "drain-approved")
    case = operator.play("drain", Where("7:before-write"))
    assert (case.acted, case.complaints) == (True, ())
    assert "at the same moment dana gave gpu-3 the Reason" in case.why


def test_what_the_controller_refuses_somebody_else_is_no_answer_to_our_write(
    stage: Theatre,
) -> None:
    stage.begin(SCENARIOS["drain-node"])
    stage.plugs.at_next_write(When.BEFORE, {"plug": "admin_resume", "node": "gpu-3"})
    asked = {"reason": "nw test [run-1/x]"}
    write = Write(verb=WriteVerb.DRAIN, node=NodeName("gpu-3"), arguments=asked)
    with stage.server.lock:
        stage.stage.world.write(write)
    assert stage.snapshot().nodes[NodeName("gpu-3")].draining


def _commits(point: Point) -> bool:
    return point.sort is Sort.COMMIT
