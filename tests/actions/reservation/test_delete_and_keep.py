"""reservation.delete, keep and restore: only what the ledger says is ours, and only as planned."""

import pytest

from actions.contract import (
    Action,
    Call,
    Done,
    Failed,
    FailureKind,
    Rejected,
    Standing,
    Unknown,
    WriteUnknown,
)
from actions.reservation.delete import Delete
from actions.reservation.keep import keep, restore
from config.node_names import NodeName
from tests.actions.fakes import make_job, make_node
from tests.actions.reservation.hands import (
    ONE,
    OURS,
    THREE,
    TWO,
    Place,
    hold_call,
    mark,
    reservation,
)

SPARES = "nw-run-3-spares-0a1b2c3d"


@pytest.fixture
def place() -> Place:
    return Place()


def test_ours_is_deleted_and_read_back(place: Place) -> None:
    place.cluster.reservations = (reservation(), reservation(name="drv580", nodes=(THREE,)))
    call = hold_call(marks=(mark(),))
    verb = Delete(place.hands)
    assert verb.look(call).standing is Standing.NOT_SO
    assert isinstance(verb.do(call), Done)
    assert [found.name for found in place.cluster.reservations] == ["drv580"]
    assert verb.look(call).standing is Standing.OURS
    assert isinstance(verb.do(call), Done)
    assert place.jobs.written == [f"delete {OURS}"]


@pytest.mark.parametrize("marks", [(), (mark(run="run-3"),), (mark(node=NodeName("drv580")),)])
def test_what_the_ledger_does_not_give_to_this_run_is_left(
    marks: tuple[object, ...], place: Place
) -> None:
    place.cluster.reservations = (reservation(),)
    call = hold_call(marks=marks)
    assert Delete(place.hands).look(call).standing is Standing.BLOCKED
    failed = Delete(place.hands).do(call)
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.REFUSED
    assert place.jobs.written == []


def test_while_a_job_points_to_it_it_is_tried_again(place: Place) -> None:
    place.cluster.reservations = (reservation(),)
    place.cluster.jobs = (make_job(reservation=OURS),)
    place.jobs.write_happens = False
    place.jobs.write_error = Rejected("delete_reservation: Requested reservation is in use")
    failed = Delete(place.hands).do(hold_call(marks=(mark(),)))
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.RETRYABLE
    assert "job 7 (ann, RUNNING) points to it" in failed.error
    place.jobs.write_error = Rejected("Access/permission denied")
    failed = Delete(place.hands).do(hold_call(marks=(mark(),)))
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.PERMANENT


def test_a_delete_whose_answer_is_lost_is_unknown(place: Place) -> None:
    place.cluster.reservations = (reservation(),)
    place.jobs.write_error = WriteUnknown("may have happened")
    assert isinstance(Delete(place.hands).do(hold_call(marks=(mark(),))), Unknown)


def spares(place: Place, **changes: object) -> None:
    place.cluster.reservations = (
        reservation(name=SPARES, nodes=(TWO, THREE), users=("nodewarden",), **changes),
    )


def keep_call(**arguments: object) -> Call:
    given = {"name": SPARES, "nodes": [THREE], "before": [TWO, THREE], **arguments}
    return hold_call(arguments=given, marks=(mark(node=NodeName(SPARES), run="run-3"),))


def test_a_spare_is_let_go_and_given_back(place: Place) -> None:
    spares(place)
    call = keep_call()
    assert keep(place.hands).look(call).standing is Standing.NOT_SO
    done = keep(place.hands).do(call)
    assert isinstance(done, Done)
    assert done.output == {"nodes": [THREE], "before": [TWO, THREE]}
    assert keep(place.hands).look(call).standing is Standing.OURS
    assert restore(place.hands).look(call).standing is Standing.NOT_SO
    assert isinstance(restore(place.hands).do(call), Done)
    assert set(place.cluster.reservations[0].nodes) == {TWO, THREE}
    assert len(place.jobs.written) == 2


def both(place: Place) -> list[Action]:
    return [keep(place.hands), restore(place.hands)]


def test_one_that_is_not_as_planned_or_not_ours_or_gone_is_left(place: Place) -> None:
    spares(place)
    strange = hold_call(arguments={"name": SPARES, "nodes": [THREE]}, marks=())
    assert "not ours" in keep(place.hands).look(strange).why
    changed = keep_call(nodes=[ONE], before=[THREE])
    for verb in both(place):
        assert verb.look(changed).standing is Standing.BLOCKED
        assert "as planned" in verb.look(changed).why
        failed = verb.do(changed)
        assert isinstance(failed, Failed)
        assert failed.kind is FailureKind.REFUSED
    place.cluster.reservations = ()
    for verb in both(place):
        assert "any more" in verb.look(keep_call()).why
        assert isinstance(verb.do(keep_call()), Failed)
    assert place.jobs.written == []


def test_a_node_that_is_added_must_be_in_nobodys_hands(place: Place) -> None:
    spares(place)
    place.cluster.nodes[ONE] = make_node(
        name=ONE, flags=frozenset({"DRAIN"}), reason="RMA", reason_by="dana"
    )
    seen = keep(place.hands).look(keep_call(nodes=[ONE, TWO, THREE]))
    assert seen.standing is Standing.BLOCKED
    assert "dana" in seen.why


def test_a_list_that_is_read_back_otherwise_says_how_to_put_it_back(place: Place) -> None:
    spares(place)
    place.jobs.after_write = lambda: spares(place, ends_at=None)
    failed = keep(place.hands).do(keep_call())
    assert isinstance(failed, Failed)
    assert failed.restore == f"scontrol update ReservationName={SPARES} Nodes=gpu-[02-03]"
