"""node.return: every gate, one by one, and the race with another operator."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from actions.cluster import NodeBase, Reservation
from actions.contract import (
    Done,
    Failed,
    FailureKind,
    Rejected,
    Standing,
    Unknown,
    Unreadable,
    WriteUnknown,
)
from actions.node.give_back import GiveBack
from actions.remote_values import HostFacts, ServiceState
from tests.actions.fakes import (
    BOOT,
    NODE,
    NOW,
    OTHER_BOOT,
    FakeCluster,
    FakeNodes,
    make_call,
    make_mark,
    make_node,
    slurmd,
)
from tests.actions.node.hands import hands

OURS = "nw A1 [run-12/0a1b2c3d]"
FACTS = HostFacts(boot_id=BOOT, gpus_seen=8)


def _cluster(**changes: object) -> FakeCluster:
    given: dict[str, object] = {
        "flags": frozenset({"DRAIN"}),
        "reason": OURS,
        "reason_by": "nodewarden",
    }
    return FakeCluster(nodes={NODE: make_node(**{**given, **changes})})


MARKED = make_call(marks=(make_mark(),))


def test_a_node_that_passes_every_gate_is_returned_and_read_back() -> None:
    cluster = _cluster()
    verb = GiveBack(hands(cluster))
    assert verb.look(MARKED).standing is Standing.NOT_SO
    assert verb.do(MARKED) == Done(output={"state": "IDLE", "unchecked": ""})
    assert cluster.written == ["resume gpu-01"]


def test_a_node_whose_reason_slurm_replaced_is_still_ours_to_return() -> None:
    cluster = _cluster(reason="Kill task failed")
    assert GiveBack(hands(cluster)).look(MARKED).standing is Standing.NOT_SO
    assert isinstance(GiveBack(hands(cluster)).do(MARKED), Done)


def test_a_down_node_that_we_drained_is_returned() -> None:
    cluster = _cluster(base=NodeBase.DOWN)
    assert isinstance(GiveBack(hands(cluster)).do(MARKED), Done)
    assert cluster.node.base is NodeBase.IDLE


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"reason": "RMA 4711", "reason_by": "dana"}, "but dana took it over: 'RMA 4711'"),
        ({"reason": f"{OURS} : keep it"}, "took it over"),
        ({"reason": "nw A1 [run-12/ffffffff]"}, "drained by another bot"),
        ({"reason": "nw A1 [run-99/0a1b2c3d]"}, "a mark of this bot that its ledger does not know"),
        ({"flags": frozenset({"DRAIN", "MAINTENANCE"})}, "held by a reservation or maintenance"),
        ({"flags": frozenset({"DRAIN", "FAIL"})}, "was set FAIL"),
        ({"flags": frozenset({"DRAIN", "NEW"})}, "flags that this version does not know: NEW"),
        ({"flags": frozenset({"DRAIN", "INVALID_REG"})}, "refused the registration"),
        ({"flags": frozenset({"DRAIN", "NOT_RESPONDING"})}, "does not answer the controller"),
        ({"flags": frozenset({"DRAIN", "REBOOT_ISSUED"})}, "in a change of its own"),
        ({"base": NodeBase.UNKNOWN}, "not a state to return from"),
    ],
)
def test_each_gate_at_the_controller_is_one_sentence_and_nothing_is_written(
    changes: dict[str, object], sentence: str
) -> None:
    cluster = _cluster(**changes)
    verb = GiveBack(hands(cluster))
    seen = verb.look(MARKED)
    assert seen.standing is Standing.BLOCKED
    gates = seen.facts["gates"]
    assert isinstance(gates, list)
    assert [gate for gate in gates if sentence in str(gate)]
    outcome = verb.do(MARKED)
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.REFUSED
    assert cluster.written == []


@pytest.mark.parametrize(
    ("nodes", "sentence"),
    [
        (FakeNodes(unit=slurmd(ServiceState.FAILED)), "slurmd on gpu-01 is failed"),
        (FakeNodes(unit=slurmd(ServiceState.UNKNOWN)), "slurmd on gpu-01 could not be read"),
        (FakeNodes(facts=replace(FACTS, gpus_seen=7)), "gpu-01 sees 7 of 8 configured GPUs"),
        (FakeNodes(facts=replace(FACTS, gpus_seen=9)), "gpu-01 sees 9 of 8 configured GPUs"),
        (FakeNodes(facts=replace(FACTS, gpus_seen=None)), "GPUs of gpu-01 could not be counted"),
        (FakeNodes(facts=None), "the boot id of gpu-01 could not be read"),
        (FakeNodes(facts=replace(FACTS, boot_id="")), "the boot id of gpu-01 could not be read"),
        (FakeNodes(facts=replace(FACTS, boot_id=OTHER_BOOT)), "was restarted since run-12"),
    ],
)
def test_each_gate_at_the_host_is_one_sentence(nodes: FakeNodes, sentence: str) -> None:
    seen = GiveBack(hands(_cluster(), nodes)).look(MARKED)
    assert seen.standing is Standing.BLOCKED
    gates = seen.facts["gates"]
    assert isinstance(gates, list)
    assert len(gates) == (2 if nodes.facts is None else 1)
    assert [gate for gate in gates if sentence in str(gate)]


def test_a_node_without_a_mark_in_the_ledger_is_not_returned() -> None:
    cluster = _cluster()
    seen = GiveBack(hands(cluster)).look(make_call())
    assert seen.standing is Standing.BLOCKED
    assert "no open drain of ours" in seen.why
    assert isinstance(GiveBack(hands(cluster)).do(make_call()), Failed)
    assert cluster.written == []


def test_a_planned_reboot_is_no_reason_to_keep_a_node_out() -> None:
    nodes = FakeNodes(facts=replace(FACTS, boot_id=OTHER_BOOT))
    call = replace(MARKED, arguments={"node": NODE, "boot_id": OTHER_BOOT})
    cluster = _cluster(reason="reboot complete")
    assert GiveBack(hands(cluster, nodes)).look(call).standing is Standing.NOT_SO


def test_another_boot_than_the_planned_one_keeps_it_out() -> None:
    call = replace(MARKED, arguments={"node": NODE, "boot_id": OTHER_BOOT})
    seen = GiveBack(hands(_cluster())).look(call)
    assert seen.standing is Standing.BLOCKED
    assert f"planned was {OTHER_BOOT}" in seen.why


def test_a_drain_made_without_knowing_the_boot_needs_the_boot_to_be_named() -> None:
    call = make_call(marks=(make_mark(boot_id="unknown"),))
    seen = GiveBack(hands(_cluster())).look(call)
    assert seen.standing is Standing.BLOCKED
    assert f"give boot_id {BOOT}" in seen.why
    named = replace(call, arguments={"node": NODE, "boot_id": BOOT})
    assert GiveBack(hands(_cluster())).look(named).standing is Standing.NOT_SO


def test_hands_off_and_reservations_keep_it_out() -> None:
    cluster = _cluster()
    assert GiveBack(hands(cluster, hands_off="burn-in")).look(MARKED).standing is Standing.BLOCKED
    cluster.reservations = (
        Reservation(name="drv580", nodes=(NODE,), starts_at=None, ends_at=None),
    )
    assert "drv580" in GiveBack(hands(cluster)).look(MARKED).why


def test_a_node_that_somebody_returned_is_left_alone() -> None:
    cluster = _cluster(flags=frozenset(), reason="")
    verb = GiveBack(hands(cluster))
    assert verb.look(MARKED).standing is Standing.FOREIGN
    assert isinstance(verb.do(MARKED), Done)
    assert cluster.written == []


def test_a_recovery_that_finds_it_returned_knows_its_own_work() -> None:
    cluster = _cluster(flags=frozenset(), reason="")
    call = replace(MARKED, intended_at=NOW - timedelta(seconds=5))
    assert GiveBack(hands(cluster)).look(call).standing is Standing.OURS


def test_a_person_who_takes_over_between_look_and_write_keeps_the_node() -> None:
    cluster = _cluster()
    verb = GiveBack(hands(cluster))
    assert verb.look(MARKED).standing is Standing.NOT_SO
    cluster.foreign("RMA 4711", by="dana")
    outcome = verb.do(MARKED)
    assert isinstance(outcome, Failed)
    assert (outcome.kind, cluster.written) == (FailureKind.REFUSED, [])


def test_a_takeover_that_our_resume_wiped_out_is_reported_with_its_restore() -> None:
    cluster = _cluster()
    cluster.before_write = lambda there: there.foreign("RMA 4711", by="dana")
    outcome = GiveBack(hands(cluster)).do(MARKED)
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.PERMANENT
    assert outcome.restore == "scontrol update NodeName=gpu-01 State=DRAIN 'Reason=RMA 4711'"


def test_who_drains_it_again_right_after_our_resume_keeps_the_node() -> None:
    cluster = _cluster()
    cluster.after_write = lambda there: there.foreign("mine", by="dana")
    outcome = GiveBack(hands(cluster, history=False)).do(MARKED)
    assert isinstance(outcome, Failed)
    assert "dana" in outcome.error
    assert cluster.node.reason == "mine"


def _restarts(nodes: FakeNodes, boot: str = OTHER_BOOT) -> Callable[[FakeCluster], None]:
    """The host restarts at that moment, once."""

    def restart(cluster: FakeCluster) -> None:
        cluster.after_write = None
        nodes.facts = replace(FACTS, boot_id=boot)

    return restart


def test_a_restart_between_look_and_write_drains_it_again_under_our_mark() -> None:
    cluster, nodes = _cluster(), FakeNodes()
    cluster.after_write = _restarts(nodes)
    outcome = GiveBack(hands(cluster, nodes)).do(MARKED)
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.PERMANENT
    assert f"restarted while it was given back (boot {BOOT}, now {OTHER_BOOT})" in outcome.error
    assert cluster.written == ["resume gpu-01", "drain gpu-01 nw restarted [run-12/0a1b2c3d]"]
    seen = GiveBack(hands(cluster, nodes)).look(MARKED)
    assert (seen.standing, seen.owner) == (Standing.BLOCKED, "us:run-12")
    assert "was restarted since run-12 drained it" in seen.why


def test_a_drain_that_cannot_be_set_again_is_left_to_a_person_with_its_command() -> None:
    cluster, nodes = _cluster(), FakeNodes()
    restart = _restarts(nodes)

    def also_refuse(there: FakeCluster) -> None:
        restart(there)
        there.before_write = lambda _there: setattr(there, "write_error", Rejected("no"))
        there.write_happens = False

    cluster.after_write = also_refuse
    outcome = GiveBack(hands(cluster, nodes)).do(MARKED)
    assert isinstance(outcome, Failed)
    assert "new work may start on it" in outcome.error
    assert outcome.restore.startswith("scontrol update NodeName=gpu-01 State=DRAIN ")


def test_a_host_that_falls_silent_at_the_write_is_not_called_returned() -> None:
    cluster, nodes = _cluster(), FakeNodes()
    cluster.after_write = _restarts(nodes, "")
    verb = GiveBack(hands(cluster, nodes))
    assert isinstance(verb.do(MARKED), Unknown)
    recovery = replace(MARKED, intended_at=NOW - timedelta(seconds=5))
    with pytest.raises(Unreadable, match="host is silent"):
        verb.look(recovery)
    nodes.facts = replace(FACTS, boot_id=OTHER_BOOT)
    assert verb.look(recovery).standing is Standing.BLOCKED
    nodes.facts = FACTS
    assert verb.look(recovery).standing is Standing.OURS


def test_a_time_out_of_the_write_is_unknown() -> None:
    cluster = _cluster()
    cluster.write_error = WriteUnknown("no answer")
    assert isinstance(GiveBack(hands(cluster)).do(MARKED), Unknown)


def test_slurms_own_no_is_passed_on() -> None:
    cluster = _cluster()
    cluster.write_error, cluster.write_happens = Rejected("Invalid node state"), False
    outcome = GiveBack(hands(cluster)).do(MARKED)
    assert isinstance(outcome, Failed)
    assert "Invalid node state" in outcome.error
