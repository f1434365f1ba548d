"""job.point and job.settle: the job uses our reservation while it must, and is as before after."""

from dataclasses import replace

import pytest

from actions.contract import Done, Failed, FailureKind, Rejected, Standing, Unknown, WriteUnknown
from actions.job.pointing import Point, Settle
from tests.actions.job.hands import (
    GROUND,
    HELD,
    TWO,
    JobCluster,
    cluster,
    hands,
    point_call,
    training,
)


def requeued(**changes: object) -> JobCluster:
    """The job waits in the queue."""
    waiting = {"state": "PENDING", "restarts": 1, "nodes": (), "state_reason": "BeginTime"}
    return cluster(jobs=(training(**{**waiting, **changes}),))


def running(**changes: object) -> JobCluster:
    """The job runs again, on our ground and through our reservation."""
    again = {"restarts": 1, "nodes": GROUND, "reservation": HELD}
    return cluster(jobs=(training(**{**again, **changes}),))


def test_a_requeued_job_is_pointed_to_our_reservation() -> None:
    found = requeued()
    assert Point(hands(found)).look(point_call()).standing is Standing.NOT_SO
    outcome = Point(hands(found)).do(point_call())
    assert isinstance(outcome, Done)
    assert outcome.output["reservation"] == HELD
    assert found.written == [f"change 7 reservation={HELD}"]
    assert Point(hands(found)).look(point_call()).standing is Standing.OURS


def test_a_job_whose_old_run_still_ends_can_be_pointed() -> None:
    found = requeued(state="COMPLETING", nodes=("gpu-01",))
    assert isinstance(Point(hands(found)).do(point_call()), Done)


def test_a_requeued_job_that_has_left_its_nodes_meanwhile_counts_as_unchanged() -> None:
    ends, waits = requeued(state="COMPLETING", nodes=("gpu-01",)), requeued()
    looks = [Point(hands(found)).look(point_call()).state for found in (ends, waits)]
    assert looks[0] == looks[1]
    assert Point(hands(cluster())).look(point_call()).state != looks[0]


def test_a_job_that_was_not_requeued_yet_is_not_pointed() -> None:
    found = cluster()
    outcome = Point(hands(found)).do(point_call())
    assert isinstance(outcome, Failed)
    assert "it still runs on gpu-01" in outcome.error
    assert found.written == []


def test_a_job_that_runs_elsewhere_already_is_left() -> None:
    found = running(reservation="")
    assert Point(hands(found)).look(point_call()).standing is Standing.FOREIGN


@pytest.mark.parametrize("changes", [{"state": "CANCELLED"}, {"reservation": "dana"}])
def test_a_job_that_ended_or_that_somebody_moved_is_left(changes: dict[str, object]) -> None:
    found = requeued(**changes)
    assert Point(hands(found)).look(point_call()).standing is Standing.BLOCKED
    assert isinstance(Point(hands(found)).do(point_call()), Failed)
    assert found.written == []


def test_all_that_differs_is_put_back_in_one_update() -> None:
    found = running(priority=1, excluded_nodes="gpu-09")
    before = point_call(priority=4711, reservation_before="team")
    outcome = Settle(hands(found)).do(before)
    assert isinstance(outcome, Done)
    assert found.written == ["change 7 reservation=team priority=4711"]
    assert outcome.output == {"reservation": "team", "priority": 4711, "excluded": "gpu-09"}


def test_what_is_as_before_is_not_written() -> None:
    found = running()
    assert isinstance(Settle(hands(found)).do(point_call()), Done)
    assert found.written == ["change 7 reservation="]
    assert Settle(hands(found)).look(point_call()).standing is Standing.OURS
    assert isinstance(Settle(hands(found)).do(point_call()), Done)
    assert len(found.written) == 1


def test_a_reservation_that_somebody_else_set_stays_theirs() -> None:
    found = running(reservation="dana")
    assert Settle(hands(found)).look(point_call()).standing is Standing.OURS
    assert isinstance(Settle(hands(found)).do(point_call()), Done)
    assert (found.written, found.job.reservation) == ([], "dana")


def test_a_job_that_ended_needs_nothing_put_back() -> None:
    assert Settle(hands(running(state="COMPLETED"))).look(point_call()).standing is Standing.FOREIGN


def test_a_plan_made_before_the_requeue_counts_the_settling() -> None:
    assert Settle(hands(cluster())).look(point_call()).standing is Standing.NOT_SO


def test_settling_takes_back_what_pointing_did() -> None:
    verb = Point(hands(cluster()))
    assert verb.spec.undo == Settle(hands(cluster())).spec.name
    assert verb.spec.parameters == Settle(hands(cluster())).spec.parameters


def test_no_answer_is_unknown_and_a_no_is_tried_again() -> None:
    found = requeued()
    found.write_error = WriteUnknown("timed out")
    assert isinstance(Point(hands(found)).do(point_call()), Unknown)
    found = requeued(state="COMPLETING", nodes=(TWO,))
    found.write_error, found.write_happens = Rejected("Job is in the process of completing"), False
    outcome = Point(hands(found)).do(point_call())
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.RETRYABLE


def test_a_change_that_another_undid_is_not_done() -> None:
    found = requeued()
    found.after_write = lambda seen: seen.__setattr__(
        "jobs", (replace(seen.jobs[0], reservation=""),)
    )
    outcome = Point(hands(found)).do(point_call())
    assert isinstance(outcome, Failed)
    assert "when read back" in outcome.error
