"""reservation.hold: exactly the asked nodes for one user, never over what somebody else holds."""

from dataclasses import replace
from datetime import timedelta

import pytest

from actions.cluster import Snapshot
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
from actions.reservation.hold import Hold
from config.node_names import NodeName
from tests.actions.fakes import INSTANCE, NOW, RUN, FakeCluster, make_node
from tests.actions.reservation.hands import (
    HOUR,
    ONE,
    OURS,
    THREE,
    TWO,
    Place,
    hold_call,
    mark,
    reservation,
)


class StaleFlags(FakeCluster):
    """Its snapshot still shows a reservation that is gone."""

    def snapshot(self) -> Snapshot:
        snapshot = FakeCluster.snapshot(self)
        reserved = make_node(name=TWO, flags=frozenset({"RESERVED"}))
        return replace(snapshot, nodes={**snapshot.nodes, TWO: reserved})


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.fixture
def verb(place: Place) -> Hold:
    return Hold(place.hands)


def test_it_is_written_once_and_read_back(verb: Hold, place: Place) -> None:
    assert verb.look(hold_call()).standing is Standing.NOT_SO
    done = verb.do(hold_call(marks=(mark(text=""),)))
    assert isinstance(done, Done)
    assert place.jobs.written == [f"create {OURS}"]
    assert done.output["nodes"] == [ONE, TWO]
    assert done.mark_text == "gpu-[01-02] for ann until 2026-11-30 18:20 UTC"


def test_one_whose_jobs_outlive_its_end_is_made_and_known_by_that(verb: Hold, place: Place) -> None:
    call = hold_call(arguments={"flags": "ignore_jobs,flex"})
    assert isinstance(verb.do(call), Done)
    assert place.cluster.reservations[0].flags >= {"FLEX", "IGNORE_JOBS"}
    rigid = (reservation(),)
    place.cluster.reservations = rigid
    seen = verb.look(hold_call(marks=(mark(),), arguments={"flags": "ignore_jobs,flex"}))
    assert (seen.standing, "its flags are" in seen.why) == (Standing.BLOCKED, True)


def test_a_second_time_writes_nothing(verb: Hold, place: Place) -> None:
    place.cluster.reservations = (reservation(),)
    call = hold_call(marks=(mark(),))
    assert verb.look(call).standing is Standing.OURS
    assert isinstance(verb.do(call), Done)
    assert place.jobs.written == []


def test_one_of_our_name_that_the_ledger_does_not_know_is_not_ours(
    verb: Hold, place: Place
) -> None:
    place.cluster.reservations = (reservation(),)
    for marks in ((), (mark(run="run-3"),), (mark(kind="drain"),), (mark(cluster="other"),)):
        seen = verb.look(hold_call(marks=marks))
        assert seen.standing is Standing.BLOCKED
        assert "the ledger does not know" in seen.why
        assert isinstance(verb.do(hold_call(marks=marks)), Failed)
    assert place.jobs.written == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"nodes": (ONE, THREE)}, "its nodes are gpu-[01,03], not gpu-[01-02]"),
        ({"users": ("ann", "bob")}, "it is for ann, bob, not for ann"),
        ({"accounts": ("pre",)}, "it is for ann, pre, not for ann"),
        ({"flags": frozenset({"MAINT", "IGNORE_JOBS"})}, "its flags are ignore_jobs,maint"),
        ({"flags": frozenset({"SPEC_NODES"})}, "its flags are none, not ignore_jobs"),
        ({"ends_at": NOW - timedelta(minutes=1)}, "it ended at 2026-11-30 17:19 UTC"),
        ({"starts_at": NOW + HOUR}, "it only begins at 2026-11-30 18:20 UTC"),
    ],
)
def test_one_with_other_contents_fails_and_says_what_is_different(
    change: dict[str, object], words: str, verb: Hold, place: Place
) -> None:
    place.cluster.reservations = (reservation(**change),)
    call = hold_call(marks=(mark(),))
    seen = verb.look(call)
    failed = verb.do(call)
    assert seen.standing is Standing.BLOCKED
    assert words in seen.why
    assert isinstance(failed, Failed)
    assert words in failed.error
    assert failed.kind is FailureKind.PERMANENT
    assert place.jobs.written == []


@pytest.mark.parametrize("starts", [timedelta(0), timedelta(minutes=30)])
def test_a_foreign_reservation_in_that_time_blocks_with_its_name(
    starts: timedelta, verb: Hold, place: Place
) -> None:
    theirs = reservation(
        name="drv580", nodes=(TWO,), starts_at=NOW + starts, active=not starts, users=("root",)
    )
    place.cluster.reservations = (theirs,)
    seen = verb.look(hold_call())
    assert seen.standing is Standing.BLOCKED
    assert "reservation drv580" in seen.why
    failed = verb.do(hold_call())
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.REFUSED
    assert place.jobs.written == []


def test_what_begins_after_its_end_or_is_on_other_nodes_is_in_nobodys_way(
    verb: Hold, place: Place
) -> None:
    place.cluster.reservations = (
        reservation(name="later", starts_at=NOW + HOUR, ends_at=NOW + 2 * HOUR, active=False),
        reservation(name="elsewhere", nodes=(THREE,)),
    )
    assert verb.look(hold_call()).standing is Standing.NOT_SO


def test_another_reservation_of_this_very_run_is_not_foreign(verb: Hold, place: Place) -> None:
    other = f"nw-{RUN}-canary-{INSTANCE}"
    place.cluster.reservations = (reservation(name=other),)
    assert verb.look(hold_call()).standing is Standing.BLOCKED
    mine = mark(node=NodeName(other))
    assert verb.look(hold_call(marks=(mine,))).standing is Standing.NOT_SO


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (make_node(name=TWO, flags=frozenset({"DRAIN"}), reason="RMA", reason_by="dana"), "dana"),
        (make_node(name=TWO, flags=frozenset({"BRANDNEW"})), "not a state"),
        (make_node(name=TWO, flags=frozenset({"MAINTENANCE"})), "maintenance"),
    ],
)
def test_a_node_in_other_hands_is_not_reserved(
    node: object, words: str, verb: Hold, place: Place
) -> None:
    place.cluster.nodes[TWO] = node  # type: ignore[assignment]
    seen = verb.look(hold_call())
    assert seen.standing is Standing.BLOCKED
    assert words in seen.why


def test_hands_off_and_unknown_nodes_are_not_reserved(verb: Hold, place: Place) -> None:
    place.hands_off[TWO] = "hands off: firmware"
    assert "firmware" in verb.look(hold_call()).why
    place.hands_off.clear()
    del place.cluster.nodes[TWO]
    assert "knows no node gpu-02" in verb.look(hold_call()).why


def test_a_node_drained_by_this_run_is_reserved_for_its_canary(verb: Hold, place: Place) -> None:
    place.cluster.nodes[ONE] = make_node(
        name=ONE, flags=frozenset({"DRAIN"}), reason=f"nw A1 [{RUN}/{INSTANCE}]"
    )
    call = hold_call(marks=(mark(kind="drain", node=ONE, text="nw A1"),))
    assert verb.look(call).standing is Standing.NOT_SO


def test_a_flag_that_is_left_of_a_gone_reservation_is_read_again(place: Place) -> None:
    place.cluster = StaleFlags(nodes=dict(place.cluster.nodes))
    place.__post_init__()
    assert Hold(place.hands).look(hold_call()).standing is Standing.NOT_SO


def test_one_that_is_gone_is_made_again(verb: Hold, place: Place) -> None:
    seen = verb.look(hold_call(marks=(mark(),)))
    assert seen.standing is Standing.NOT_SO
    assert "which is gone" in seen.why


def test_nothing_acts_for_a_minute_after_a_controller_start(verb: Hold, place: Place) -> None:
    place.cluster.started = NOW - timedelta(seconds=20)
    with pytest.raises(Unreadable, match="has just started"):
        verb.look(hold_call())
    failed = verb.do(hold_call())
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.RETRYABLE


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": "nw-run-3-ground-0a1b2c3d"},
        {"name": f"nw-{RUN}-ground-ffffffff"},
        {"name": "drv580"},
        {"name": None},
        {"nodes": []},
        {"nodes": "ALL"},
        {"user": ""},
        {"length": "90s"},
        {"length": "40d"},
        {"length": "soon"},
        {"flags": "overlap"},
    ],
    ids=str,
)
def test_what_is_no_reservation_of_ours_is_refused(
    arguments: dict[str, object], verb: Hold, place: Place
) -> None:
    with pytest.raises(Refusal):
        verb.look(hold_call(arguments=arguments))
    failed = verb.do(hold_call(arguments=arguments))
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.REFUSED
    assert place.jobs.written == []


def test_a_lost_answer_is_unknown(verb: Hold, place: Place) -> None:
    place.jobs.write_error = WriteUnknown("it may have happened")
    assert isinstance(verb.do(hold_call()), Unknown)
    place.cluster.reservations, place.jobs.write_error = (), None
    place.jobs.written.clear()
    place.jobs.silent_after = True
    unknown = verb.do(hold_call())
    assert isinstance(unknown, Unknown)
    assert "not read back" in unknown.why


def test_a_refusal_of_slurm_is_told_in_its_words(verb: Hold, place: Place) -> None:
    place.jobs.write_error, place.jobs.write_happens = Rejected("Invalid user id"), False
    failed = verb.do(hold_call())
    assert isinstance(failed, Failed)
    assert "Invalid user id" in failed.error


def test_one_that_is_gone_when_read_back_may_be_tried_again(verb: Hold, place: Place) -> None:
    def forget() -> None:
        place.cluster.reservations = ()

    place.jobs.after_write = forget
    failed = verb.do(hold_call())
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.RETRYABLE


def test_one_that_is_read_back_with_other_nodes_says_how_to_take_it_away(
    verb: Hold, place: Place
) -> None:
    def change() -> None:
        place.cluster.reservations = (reservation(nodes=(ONE,)),)

    place.jobs.after_write = change
    failed = verb.do(hold_call())
    assert isinstance(failed, Failed)
    assert failed.restore == f"scontrol delete ReservationName={OURS}"


def test_ours_is_taken_back_where_another_came_at_the_same_moment(verb: Hold, place: Place) -> None:
    theirs = reservation(name="drv580", nodes=(TWO,))

    def another() -> None:
        place.jobs.before_write = None
        place.cluster.reservations = (theirs,)

    # `maint` lets both stand side by side.
    place.jobs.before_write = another
    place.jobs.create_reservation = lambda wish: _beside(place, theirs)  # type: ignore[method-assign]
    failed = verb.do(hold_call(arguments={"flags": "maint,ignore_jobs"}))
    assert isinstance(failed, Failed)
    assert (
        "drv580 was made on the same nodes at the same moment: ours was taken back" in failed.error
    )
    assert place.cluster.reservations == (theirs,)


def _beside(place: Place, theirs: object) -> None:
    ours = reservation(flags=frozenset({"MAINT", "IGNORE_JOBS", "SPEC_NODES"}))
    place.cluster.reservations = (theirs, ours)  # type: ignore[assignment]
    place.jobs.before_write = None
