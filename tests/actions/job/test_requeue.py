"""job.requeue: exactly the planned job, on held ground, once, and never while old ranks may write."""

from dataclasses import replace
from datetime import timedelta

import pytest

from actions.cluster import NodeBase
from actions.contract import (
    Done,
    Failed,
    FailureKind,
    Refusal,
    Rejected,
    Standing,
    Unknown,
    Unreadable,
    WriteUnknown,
)
from actions.job.requeue import Requeue
from actions.power_hands import PowerState
from tests.actions.fakes import NOW
from tests.actions.job.hands import (
    GROUND,
    NODES,
    SICK,
    TWO,
    FakePower,
    JobCluster,
    cluster,
    hands,
    held,
    requeue_call,
    training,
)


def ready(**changes: object) -> JobCluster:
    """Drained and held: what is left is the requeue."""
    found = cluster(**{"reservations": (held(),), **changes})
    found.change_node(SICK, flags=frozenset({"DRAIN"}), base=NodeBase.MIXED)
    return found


def refused(found: JobCluster, power: FakePower | None = None) -> str:
    outcome = Requeue(hands(found, power=power)).do(requeue_call())
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.REFUSED
    assert found.written == []
    return outcome.error


def test_the_job_is_requeued_by_its_own_id_and_read_back() -> None:
    found = ready()
    verb = Requeue(hands(found))
    seen = verb.look(requeue_call())
    assert seen.standing is Standing.NOT_SO
    assert [loss.job for loss in seen.jobs_end] == ["7"]
    assert seen.jobs_end[0].lost
    outcome = verb.do(requeue_call())
    assert isinstance(outcome, Done)
    assert (outcome.output["restarts"], outcome.output["state"]) == (1, "COMPLETING")
    assert found.written == ["requeue 7"]


def test_a_look_changes_nothing_and_needs_neither_drain_nor_reservation_yet() -> None:
    found = cluster()
    assert Requeue(hands(found)).look(requeue_call()).standing is Standing.NOT_SO
    assert found.written == []


def test_a_restartable_job_loses_nothing() -> None:
    found = ready(jobs=(training(comment="nw:restartable"),))
    assert not Requeue(hands(found)).look(requeue_call()).jobs_end[0].lost


def test_slurm_was_faster_and_the_bot_does_not_requeue_again() -> None:
    found = ready(jobs=(training(restarts=1),))
    seen = Requeue(hands(found)).look(requeue_call())
    assert (seen.standing, seen.jobs_end) == (Standing.FOREIGN, ())
    assert "requeued already, planned from Restarts 0" in refused(found)


def test_between_look_and_write_slurm_may_still_be_faster() -> None:
    found = ready()
    verb = Requeue(hands(found))
    assert verb.look(requeue_call()).standing is Standing.NOT_SO
    found.change_the_job(state="PENDING", restarts=1, nodes=())
    outcome = verb.do(requeue_call())
    assert isinstance(outcome, Failed)
    assert found.written == []


def test_a_requeue_whose_outcome_was_lost_is_found_again() -> None:
    found = ready(jobs=(training(restarts=1, state="COMPLETING"),))
    after = replace(requeue_call(), intended_at=NOW)
    assert Requeue(hands(found)).look(after).standing is Standing.OURS
    found.change_the_job(restarts=2)
    assert Requeue(hands(found)).look(after).standing is Standing.FOREIGN


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "COMPLETED"},
        {"state": "SUSPENDED"},
        {"nodes": (TWO,)},
        {"batch": False},
        {"requeue": False},
        {"het_job": 7},
        {"array_job": 7, "array_task": "4-9"},
        {"federation_origin": "west"},
        {"restarts": 2},
    ],
)
def test_what_is_not_as_planned_is_left_alone(changes: dict[str, object]) -> None:
    found = ready(jobs=(training(**changes),))
    assert Requeue(hands(found)).look(requeue_call()).standing is not Standing.NOT_SO
    assert refused(found)


def test_fewer_restarts_than_planned_is_another_job() -> None:
    verb = Requeue(hands(ready()))
    assert verb.look(requeue_call(restarts=3)).standing is Standing.BLOCKED


def test_nothing_is_requeued_while_others_could_take_the_nodes() -> None:
    for lost in ((), (held(active=False),)):
        assert "no reservation of this run holds its nodes" in refused(ready(reservations=lost))
    assert "is not for ann alone" in refused(ready(reservations=(held(users=("ann", "bob")),)))
    assert "which is not its ground" in refused(ready(reservations=(held(nodes=NODES),)))
    assert "which is not its ground" in refused(ready(reservations=(held(nodes=GROUND[:2]),)))


def test_a_reservation_that_this_run_did_not_make_holds_nothing() -> None:
    found = ready()
    foreign = replace(requeue_call(), marks=())
    outcome = Requeue(hands(found)).do(foreign)
    assert isinstance(outcome, Failed)
    assert found.written == []


def test_a_node_that_takes_new_work_would_get_the_job_back() -> None:
    found = ready()
    found.change_node(SICK, flags=frozenset())
    assert "drain it first" in refused(found)


def test_while_a_silent_node_may_still_write_its_job_is_not_requeued() -> None:
    found = ready()
    found.change_node(SICK, flags=frozenset({"DRAIN", "NOT_RESPONDING"}))
    assert "not answering is not dead" in refused(found)
    assert "reads on and off" in refused(found, FakePower(says=[PowerState.ON, PowerState.OFF]))
    off = FakePower(says=[PowerState.OFF, PowerState.OFF])
    assert isinstance(Requeue(hands(found, power=off)).do(requeue_call()), Done)


def test_a_blind_list_refuses_it() -> None:
    found = ready(blind="PrivateData=jobs is set")
    with pytest.raises(Refusal, match="PrivateData=jobs is set"):
        Requeue(hands(found)).look(requeue_call())
    assert "PrivateData=jobs is set" in refused(found)


def test_shortly_after_a_controller_start_nothing_is_requeued() -> None:
    found = ready(started=NOW - timedelta(seconds=30))
    with pytest.raises(Unreadable, match="just started"):
        Requeue(hands(found)).look(requeue_call())
    outcome = Requeue(hands(found)).do(requeue_call())
    assert isinstance(outcome, Failed)
    assert (outcome.kind, found.written) == (FailureKind.RETRYABLE, [])


def test_a_write_that_may_have_happened_is_unknown() -> None:
    found = ready(write_error=WriteUnknown("timed out"))
    assert isinstance(Requeue(hands(found)).do(requeue_call()), Unknown)


def test_a_no_of_the_controller_is_a_failure() -> None:
    found = ready(write_error=Rejected("Requested operation is presently disabled"))
    found.write_happens = False
    outcome = Requeue(hands(found)).do(requeue_call())
    assert isinstance(outcome, Failed)
    assert "presently disabled" in outcome.error


def test_a_yes_without_a_restart_is_not_done() -> None:
    outcome = Requeue(hands(ready(write_happens=False))).do(requeue_call())
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.RETRYABLE
    assert "Slurm said yes, but job 7 is RUNNING Restarts 0" in outcome.error
