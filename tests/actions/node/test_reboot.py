"""A node is restarted only when it is drained by us, empty and saved so; the drain outlives it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from actions.cluster import Reservation, Snapshot
from actions.contract import (
    Call,
    Done,
    Failed,
    FailureKind,
    Standing,
    Unknown,
    Unreadable,
    Wait,
    WriteUnknown,
)
from actions.node.reboot import Reboot
from actions.node.wait_for import WaitFor
from tests.actions.fakes import (
    BOOT,
    CLUSTER,
    HEALTHY,
    INSTANCE,
    NODE,
    NOW,
    OTHER_BOOT,
    FakeCluster,
    FakeNodes,
    make_call,
    make_job,
    make_mark,
    make_node,
)
from tests.actions.node.hands import hands

OURS = make_mark()


def drained(**changes: object) -> FakeCluster:
    """The node, drained by us five minutes ago and empty."""
    given = {"flags": frozenset({"DRAIN"}), "reason": OURS.text, "reason_by": "nodewarden"}
    return FakeCluster(nodes={NODE: make_node(**(given | changes))})


def call(**changes: object) -> Call:
    return make_call(**{"marks": (OURS,), "arguments": {"boot_id": BOOT}, **changes})


def test_a_node_that_we_drained_is_restarted_and_stays_drained() -> None:
    cluster = drained()
    verb = Reboot(hands(cluster))
    assert verb.look(call()).standing is Standing.NOT_SO
    done = verb.do(call())
    assert isinstance(done, Done)
    assert cluster.written == [f"reboot {NODE}"]
    assert "DRAIN" in str(done.output["state"])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"flags": frozenset()}, "only a node that this bot drained"),
        ({"reason": "RMA 4711", "reason_by": "dana"}, "took it over"),
        ({"reason": f"nw A1 [run-99/{INSTANCE}]"}, "ledger does not know"),
        ({"cpus_allocated": 4}, "is not drained and empty"),
        ({"flags": frozenset({"DRAIN", "COMPLETING"})}, "is not drained and empty"),
    ],
)
def test_another_node_is_not_restarted(changes: dict[str, object], says: str) -> None:
    cluster = drained(**changes)
    verb = Reboot(hands(cluster))
    seen, outcome = verb.look(call()), verb.do(call())
    assert seen.standing is Standing.BLOCKED
    assert says in seen.why
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.REFUSED
    assert cluster.written == []


@pytest.mark.parametrize("state", ["RUNNING", "SUSPENDED", "COMPLETING", "a word from tomorrow"])
def test_a_job_of_any_state_keeps_it_from_a_restart(state: str) -> None:
    cluster = drained()
    cluster.jobs = (make_job(state=state),)
    verb = Reboot(hands(cluster))
    assert "1 job(s) on it" in verb.look(call()).why
    assert isinstance(verb.do(call()), Failed)
    assert cluster.written == []


def test_a_blind_job_list_keeps_it_from_a_restart() -> None:
    cluster = drained()
    cluster.blind = "no other user's job is visible"
    assert "cannot be believed" in Reboot(hands(cluster)).look(call()).why
    assert isinstance(Reboot(hands(cluster)).do(call()), Failed)
    assert cluster.written == []


def test_a_drain_that_slurmctld_may_not_have_saved_is_waited_for() -> None:
    fresh = replace(OURS, at=NOW - timedelta(seconds=9))
    verb = Reboot(hands(drained()))
    with pytest.raises(Unreadable, match="may not have saved our drain"):
        verb.look(call(marks=(fresh,)))
    young = verb.do(call(marks=(fresh,)))
    assert isinstance(young, Failed)
    assert young.kind is FailureKind.RETRYABLE
    old = replace(OURS, at=NOW - timedelta(seconds=10))
    assert verb.look(call(marks=(old,))).standing is Standing.NOT_SO


@pytest.mark.parametrize("program", ["", "(null)"])
def test_without_a_reboot_program_it_is_refused(program: str) -> None:
    cluster = drained()
    cluster.reboot_program = program
    seen = Reboot(hands(cluster)).look(call())
    assert seen.standing is Standing.BLOCKED
    assert "no RebootProgram" in seen.why
    assert isinstance(Reboot(hands(cluster)).do(call()), Failed)
    assert cluster.written == []


def test_a_resume_timeout_below_the_measured_boot_time_refuses_it() -> None:
    cluster = drained()
    cluster.resume_timeout = timedelta(seconds=60)
    slow = Reboot(hands(cluster, boot_time=timedelta(minutes=8)))
    assert "ResumeTimeout is 1m, and a boot takes 8m" in slow.look(call()).why
    assert isinstance(slow.do(call()), Failed)
    assert cluster.written == []
    unknown = Reboot(hands(cluster)).look(call())
    assert unknown.standing is Standing.NOT_SO
    assert "boot_time of its pool is not configured" in unknown.why


def test_hands_off_and_foreign_reservations_refuse_it() -> None:
    assert Reboot(hands(drained(), hands_off="protected")).look(call()).standing is Standing.BLOCKED
    cluster = drained()
    held = Reservation(name="maint", nodes=(NODE,), starts_at=None, ends_at=None)
    cluster.reservations = (held,)
    assert "maint" in Reboot(hands(cluster)).look(call()).why
    of_another_run = make_mark(kind="reservation", node="maint", run="run-99")
    seen = Reboot(hands(cluster)).look(call(marks=(OURS, of_another_run)))
    assert seen.standing is Standing.BLOCKED
    of_this_run = make_mark(kind="reservation", node="maint")
    seen = Reboot(hands(cluster)).look(call(marks=(OURS, of_this_run)))
    assert seen.standing is Standing.NOT_SO


class Stale(FakeCluster):
    """Its snapshot is as old as one may be: what was made a second ago is not in it."""

    def snapshot(self) -> Snapshot:
        return replace(super().snapshot(), reservations=())


def test_a_reservation_of_this_run_that_is_younger_than_the_snapshot_is_no_foreign_hold() -> None:
    flags = frozenset({"DRAIN", "MAINTENANCE", "RESERVED"})
    node = make_node(flags=flags, reason=OURS.text, reason_by="nodewarden")
    cluster = Stale(nodes={NODE: node})
    cluster.reservations = (Reservation(name="ours", nodes=(NODE,), starts_at=None, ends_at=None),)
    mine = make_mark(kind="reservation", node="ours")
    fresh = replace(hands(cluster), jobs={CLUSTER: cluster})  # type: ignore[dict-item]
    assert Reboot(fresh).look(call(marks=(OURS, mine))).standing is Standing.NOT_SO
    assert Reboot(fresh).look(call()).standing is Standing.BLOCKED


def test_a_node_that_somebody_restarted_meanwhile_is_left_alone() -> None:
    nodes = FakeNodes(facts=replace(HEALTHY, boot_id=OTHER_BOOT))
    seen = Reboot(hands(drained(), nodes)).look(call())
    assert seen.standing is Standing.BLOCKED
    assert "was restarted since it was looked at" in seen.why


def test_a_drain_that_the_restart_wiped_out_is_said_with_how_to_restore_it() -> None:
    cluster = drained()
    cluster.after_write = lambda played: played.change(flags=frozenset({"REBOOT_ISSUED"}))
    outcome = Reboot(hands(cluster)).do(call())
    assert isinstance(outcome, Failed)
    assert "its drain is gone" in outcome.error
    assert "State=DRAIN" in outcome.restore
    assert OURS.text in outcome.restore


def test_a_lost_answer_is_unknown() -> None:
    cluster = drained()
    cluster.write_error = WriteUnknown("timed out")
    assert isinstance(Reboot(hands(cluster)).do(call()), Unknown)


def test_after_an_interruption_another_boot_means_done() -> None:
    nodes = FakeNodes(facts=replace(HEALTHY, boot_id=OTHER_BOOT))
    seen = Reboot(hands(drained(), nodes)).look(call(intended_at=NOW))
    assert seen.standing is Standing.OURS
    assert OTHER_BOOT in seen.why


def test_after_an_interruption_a_restart_under_way_is_not_asked_for_again() -> None:
    cluster = drained(flags=frozenset({"DRAIN", "REBOOT_ISSUED", "NOT_RESPONDING"}))
    seen = Reboot(hands(cluster, FakeNodes(facts=None))).look(call(intended_at=NOW))
    assert seen.standing is Standing.OURS
    assert "under way" in seen.why


def test_after_an_interruption_the_same_boot_means_that_nothing_happened() -> None:
    seen = Reboot(hands(drained())).look(call(intended_at=NOW))
    assert (seen.standing, seen.boot_id) == (Standing.NOT_SO, BOOT)


def test_a_restart_without_its_drain_is_not_called_done() -> None:
    cluster = drained(flags=frozenset())
    nodes = FakeNodes(facts=replace(HEALTHY, boot_id=OTHER_BOOT))
    assert Reboot(hands(cluster, nodes)).look(call(intended_at=NOW)).standing is Standing.BLOCKED


BEFORE = {"condition": "rebooted", "boot_id": BOOT}


def test_rebooted_is_another_boot_id_and_tells_it() -> None:
    verb = WaitFor(hands(drained(), FakeNodes(facts=replace(HEALTHY, boot_id=OTHER_BOOT))))
    done = verb.do(make_call(arguments=BEFORE))
    assert isinstance(done, Done)
    assert done.output["boot_id"] == OTHER_BOOT
    assert isinstance(WaitFor(hands(drained())).do(make_call(arguments=BEFORE)), Wait)


@pytest.mark.parametrize(("moved", "done"), [(1, False), (60, False), (61, True), (-600, True)])
def test_where_no_boot_id_is_read_a_minute_of_boot_time_counts(moved: int, done: bool) -> None:
    cluster = drained(boot_time=NOW + timedelta(seconds=moved))
    verb = WaitFor(hands(cluster, FakeNodes(facts=None)))
    given = {**BEFORE, "boot_time": NOW.isoformat()}
    assert isinstance(verb.do(make_call(arguments=given)), Done if done else Wait)
    given["boot_id"] = "unknown"
    assert isinstance(verb.do(make_call(arguments=given)), Done if done else Wait)


def test_the_same_boot_id_is_no_restart_whatever_boot_time_says() -> None:
    cluster = drained(boot_time=NOW + timedelta(hours=1))
    given = {**BEFORE, "boot_time": NOW.isoformat()}
    assert isinstance(WaitFor(hands(cluster)).do(make_call(arguments=given)), Wait)


def test_rebooted_without_a_boot_to_compare_with_is_refused() -> None:
    outcome = WaitFor(hands(drained())).do(make_call(arguments={"condition": "rebooted"}))
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.REFUSED


def test_a_deadline_ends_the_wait_for_a_restart() -> None:
    given = {**BEFORE, "deadline": NOW.isoformat()}
    assert isinstance(WaitFor(hands(drained())).do(make_call(arguments=given)), Failed)


def test_a_back_end_that_cannot_restart_says_so() -> None:
    limited = replace(hands(drained()), changes={})
    seen = Reboot(limited).look(call())
    assert seen.standing is Standing.BLOCKED
    assert f"back end of {CLUSTER}" in seen.why
