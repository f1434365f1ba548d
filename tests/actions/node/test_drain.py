"""node.drain: it takes out what nobody holds, and never touches what somebody does."""

from dataclasses import replace
from datetime import timedelta

import pytest

from actions.cluster import NodeBase, Reservation
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
from actions.hands import WrittenReason
from actions.node.drain import Drain
from config.ids import ClusterName, InstanceId, RunId
from config.node_names import NodeName
from tests.actions.fakes import (
    BOOT,
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

OURS = "nw A1 [run-12/0a1b2c3d]"


def _cluster(**changes: object) -> FakeCluster:
    return FakeCluster(nodes={NODE: make_node(**changes)})


def _drained(reason: str, **changes: object) -> FakeCluster:
    return _cluster(flags=frozenset({"DRAIN"}), reason=reason, reason_by="root", **changes)


def test_a_free_node_is_drained_with_our_mark_and_read_back() -> None:
    cluster = _cluster()
    verb = Drain(hands(cluster))
    assert verb.look(make_call()).standing is Standing.NOT_SO
    outcome = verb.do(make_call())
    assert isinstance(outcome, Done)
    assert outcome.mark_text == OURS
    assert cluster.written == [f"drain {NODE} {OURS}"]


def test_a_look_changes_nothing() -> None:
    cluster = _cluster()
    Drain(hands(cluster)).look(make_call())
    assert cluster.written == []


def test_the_given_reason_stands_in_the_mark_and_whole_in_the_output() -> None:
    cluster = _cluster()
    call = make_call(arguments={"reason": 'fan broken; ask "Dana" <#C1>'})
    outcome = Drain(hands(cluster)).do(call)
    assert isinstance(outcome, Done)
    assert outcome.mark_text == "nw fan broken ask D [run-12/0a1b2c3d]"
    assert outcome.output["why"] == 'fan broken; ask "Dana" <#C1>'


def test_the_look_lists_the_jobs_that_stay_and_says_that_none_ends() -> None:
    cluster = _cluster(base=NodeBase.MIXED)
    cluster.jobs = (make_job(ends_at=NOW + timedelta(hours=3)),)
    seen = Drain(hands(cluster)).look(make_call())
    assert seen.jobs_end == ()
    stays = {"id": "7", "user": "ann", "name": "llama", "gpus": 8, "ends": "2026-11-30T20:20Z"}
    assert seen.facts["jobs_stay"] == [stays]
    assert "job 7 (ann) goes on until 2026-11-30T20:20Z" in seen.why
    outcome = Drain(hands(cluster)).do(make_call())
    assert isinstance(outcome, Done)
    assert (outcome.output["jobs_stay"], outcome.output["job_count"]) == ([stays], 1)
    assert (seen.boot_id, seen.owner) == (BOOT, "nobody")


def test_a_blind_job_list_does_not_keep_a_drain_from_saving_a_node() -> None:
    cluster = _cluster(base=NodeBase.MIXED)
    cluster.blind = "node MIXED without a visible job"
    seen = Drain(hands(cluster)).look(make_call())
    assert seen.standing is Standing.NOT_SO
    assert seen.facts["job_count"] is None
    assert "its jobs are not known: node MIXED without a visible job" in seen.why


def test_a_busy_node_without_a_job_in_the_list_is_not_said_to_be_empty() -> None:
    cluster = _cluster(base=NodeBase.MIXED)
    assert "no job is on it" not in Drain(hands(cluster)).look(make_call()).why
    assert "no job is on it" in Drain(hands(_cluster())).look(make_call()).why


@pytest.mark.parametrize(
    ("changes", "owner"),
    [
        ({"flags": frozenset({"DRAIN"}), "reason": "RMA 4711", "reason_by": "dana"}, "dana"),
        ({"flags": frozenset({"DRAIN"}), "reason": "", "reason_by": "dana"}, "dana"),
        ({"flags": frozenset({"MAINTENANCE"})}, "maintenance"),
        ({"flags": frozenset({"RESERVED"})}, "maintenance"),
        ({"flags": frozenset({"FAIL"}), "reason": "x", "reason_by": "dana"}, "dana"),
        ({"base": NodeBase.DOWN, "reason": "RMA 4711", "reason_by": "dana"}, "dana"),
        (
            {"flags": frozenset({"DRAIN"}), "reason": "nw A1 [run-12/ffffffff]"},
            "instance ffffffff",
        ),
        (
            {"flags": frozenset({"DRAIN"}), "reason": "nw A1 [run-99/0a1b2c3d]"},
            "lost mark run-99",
        ),
        (
            {
                "flags": frozenset({"DRAIN"}),
                "reason": "gres/gpu count reported lower than configured (7 < 8)",
            },
            "slurm",
        ),
    ],
)
def test_what_somebody_else_holds_is_not_touched(changes: dict[str, object], owner: str) -> None:
    cluster = _cluster(**changes)
    verb = Drain(hands(cluster))
    seen = verb.look(make_call())
    assert (seen.standing, seen.owner) == (Standing.FOREIGN, owner)
    outcome = verb.do(make_call())
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.REFUSED
    assert cluster.written == []


def test_a_reservation_holds_its_nodes_before_slurm_flags_them() -> None:
    cluster = _cluster()
    cluster.reservations = (
        Reservation(name="drv580", nodes=(NODE,), starts_at=None, ends_at=None),
    )
    seen = Drain(hands(cluster)).look(make_call())
    assert (seen.standing, seen.owner) == (Standing.FOREIGN, "drv580")


def test_a_hands_off_label_holds() -> None:
    cluster = _cluster()
    seen = Drain(hands(cluster, hands_off="label by dana: burn-in")).look(make_call())
    assert seen.standing is Standing.FOREIGN
    assert "burn-in" in seen.why


@pytest.mark.parametrize(
    "changes",
    [
        {"flags": frozenset({"NEW_FLAG"})},
        {"base": NodeBase.OTHER},
        {"flags": frozenset({"REBOOT_ISSUED"})},
        {"flags": frozenset({"POWERING_DOWN"})},
    ],
)
def test_a_state_that_is_not_understood_or_changes_by_itself_blocks(
    changes: dict[str, object],
) -> None:
    cluster = _cluster(**changes)
    assert Drain(hands(cluster)).look(make_call()).standing is Standing.BLOCKED
    assert isinstance(Drain(hands(cluster)).do(make_call()), Failed)
    assert cluster.written == []


def test_a_down_node_with_slurms_own_reason_can_be_taken() -> None:
    cluster = _cluster(
        base=NodeBase.DOWN, flags=frozenset({"NOT_RESPONDING"}), reason="Not responding"
    )
    verb = Drain(hands(cluster))
    assert verb.look(make_call()).standing is Standing.NOT_SO
    assert isinstance(verb.do(make_call()), Done)


@pytest.mark.parametrize(
    "reason",
    [OURS, f"{OURS} : Not responding", "Kill task failed", "nw other [run-12/0a1b2c3d]"],
)
def test_a_drain_of_ours_stays_ours_also_when_slurm_wrote_over_it(reason: str) -> None:
    cluster = _drained(reason)
    seen = Drain(hands(cluster)).look(make_call(marks=(make_mark(),)))
    assert (seen.standing, seen.owner) == (Standing.OURS, "us:run-12")


def test_the_mark_of_this_very_run_is_ours_before_the_ledger_knows_it() -> None:
    assert Drain(hands(_drained(OURS))).look(make_call()).standing is Standing.OURS


def test_a_person_who_edits_the_reason_takes_the_node_over() -> None:
    cluster = _drained("RMA 4711")
    seen = Drain(hands(cluster)).look(make_call(marks=(make_mark(),)))
    assert seen.standing is Standing.FOREIGN
    assert "took it over" in seen.why


RECOVERY = make_call(intended_at=NOW - timedelta(seconds=5), marks=(make_mark(text=""),))
"""The look after a crash: the open intent has its mark, and nothing shows that it wrote."""


def test_a_run_that_is_not_known_to_have_written_is_not_said_to_have_drained() -> None:
    seen = Drain(hands(_drained("RMA 4711"))).look(RECOVERY)
    assert seen.standing is Standing.FOREIGN
    assert "was drained by run-12" not in seen.why
    assert "whether run-12 drained it before is not known" in seen.why


def test_a_drain_of_slurm_itself_is_not_claimed_for_a_write_that_nothing_shows() -> None:
    cluster = _drained("Kill task failed")
    seen = Drain(hands(cluster)).look(RECOVERY)
    assert (seen.standing, seen.owner) == (Standing.FOREIGN, "slurm")
    proven = replace(RECOVERY, marks=(make_mark(),))
    assert Drain(hands(cluster)).look(proven).standing is Standing.OURS


def test_the_reason_of_an_undrained_node_is_said_to_be_replaced() -> None:
    cluster = _cluster(reason="watch the fan", reason_by="dana")
    seen = Drain(hands(cluster)).look(make_call())
    assert seen.standing is Standing.NOT_SO
    assert "its Reason 'watch the fan' by dana is replaced" in seen.why
    assert "replaced" not in Drain(hands(_cluster(reason="Not responding"))).look(make_call()).why


@pytest.mark.parametrize(
    "mark",
    [
        make_mark(boot_id=OTHER_BOOT),
        make_mark(node=NodeName("gpu-02")),
        make_mark(cluster=ClusterName("other")),
        make_mark(kind="reservation"),
    ],
)
def test_a_mark_of_another_boot_node_cluster_or_kind_proves_nothing(mark: object) -> None:
    cluster = _drained("Kill task failed")
    seen = Drain(hands(cluster)).look(make_call(marks=(mark,)))
    assert (seen.standing, seen.owner) == (Standing.FOREIGN, "slurm")


def test_another_instance_with_the_same_run_number_is_foreign() -> None:
    cluster = _drained(OURS)
    call = make_call(instance=InstanceId("ffffffff"), marks=(make_mark(run=RunId("run-12")),))
    assert Drain(hands(cluster)).look(call).standing is Standing.FOREIGN


def test_an_unreachable_host_has_an_unknown_boot() -> None:
    seen = Drain(hands(_cluster(), FakeNodes(facts=None))).look(make_call())
    assert seen.boot_id == "unknown"


def test_nothing_acts_in_the_first_minute_of_a_controller() -> None:
    cluster = _cluster()
    cluster.started = NOW - timedelta(seconds=20)
    with pytest.raises(Unreadable, match="wait until 17:21 UTC"):
        Drain(hands(cluster)).look(make_call())


def test_an_unknown_node_is_refused() -> None:
    with pytest.raises(Refusal, match="gpu-99"):
        Drain(hands(_cluster())).look(make_call(node=NodeName("gpu-99")))


def test_a_drain_that_came_in_between_look_and_write_is_seen_before_the_write() -> None:
    cluster = _cluster()
    verb = Drain(hands(cluster))
    verb.look(make_call())
    cluster.foreign("RMA 4711", by="dana")
    outcome = verb.do(make_call())
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.REFUSED
    assert (cluster.written, cluster.node.reason) == ([], "RMA 4711")


def test_a_drain_that_our_write_replaced_is_reported_with_the_command_that_restores_it() -> None:
    cluster = _cluster()
    cluster.before_write = lambda there: there.foreign("RMA 4711 'fan'", by="dana")
    outcome = Drain(hands(cluster)).do(make_call())
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.PERMANENT
    assert "dana" in outcome.error
    assert "RMA 4711" in outcome.error
    assert outcome.restore == (
        "scontrol update NodeName=gpu-01 State=DRAIN 'Reason=RMA 4711 '\"'\"'fan'\"'\"''"
    )


def test_an_old_reason_that_was_seen_before_the_write_is_kept_in_the_output() -> None:
    cluster = _cluster(reason="fabric checked last week", reason_by="dana")
    cluster.foreign("fabric checked last week", by="dana")
    cluster.change(flags=frozenset())
    outcome = Drain(hands(cluster)).do(make_call())
    assert isinstance(outcome, Done)
    assert outcome.output["reason_before"] == "fabric checked last week"
    assert outcome.output["reason_before_by"] == "dana"


def test_our_text_beside_anothers_name_in_accounting_means_that_theirs_was_replaced() -> None:
    cluster = _cluster()

    def merged(there: FakeCluster) -> None:
        there.history[:] = [WrittenReason(reason=there.node.reason, by="dana", at=NOW)]

    cluster.after_write = merged
    outcome = Drain(hands(cluster)).do(make_call())
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.PERMANENT
    assert "dana gave gpu-01 a Reason" in outcome.error
    assert outcome.restore.startswith(
        "scontrol update NodeName=gpu-01 State=DRAIN 'Reason=drain of"
    )


def test_a_history_that_gives_no_answer_is_told_with_the_drain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def silent(_self: FakeCluster, _node: NodeName, _moment: object) -> list[WrittenReason]:
        raise Unreadable("accounting: connection refused")

    assert isinstance(clean := Drain(hands(_cluster())).do(make_call()), Done)
    monkeypatch.setattr(FakeCluster, "written_since", silent)
    assert isinstance(late := Drain(hands(_cluster())).do(make_call()), Done)
    assert clean.output["unchecked"] == ""
    assert late.output["unchecked"] == "accounting: connection refused"


def test_who_takes_over_right_after_our_write_keeps_the_node() -> None:
    cluster = _cluster()
    cluster.after_write = lambda there: there.foreign("mine now", by="dana")
    outcome = Drain(hands(cluster, history=False)).do(make_call())
    assert isinstance(outcome, Failed)
    assert "dana took gpu-01 over" in outcome.error
    assert cluster.node.reason == "mine now"


def test_a_drain_that_is_gone_when_read_back_has_failed() -> None:
    cluster = _cluster()
    cluster.after_write = lambda there: there.change(flags=frozenset(), reason="")
    outcome = Drain(hands(cluster, history=False)).do(make_call())
    assert isinstance(outcome, Failed)
    assert "resumed" in outcome.error


def test_slurm_writing_over_our_text_at_once_does_not_make_the_drain_fail() -> None:
    cluster = _cluster()
    cluster.after_write = lambda there: there.change(reason="Kill task failed")
    assert isinstance(Drain(hands(cluster)).do(make_call()), Done)


@pytest.mark.parametrize("happens", [True, False])
def test_a_time_out_of_the_write_is_unknown(happens: bool) -> None:
    cluster = _cluster()
    cluster.write_error, cluster.write_happens = WriteUnknown("no answer in 5 s"), happens
    assert isinstance(Drain(hands(cluster)).do(make_call()), Unknown)


def test_a_lost_read_back_is_unknown() -> None:
    cluster = _cluster()

    def fall_silent(there: FakeCluster) -> None:
        there.silent = True

    cluster.after_write = fall_silent
    assert isinstance(Drain(hands(cluster)).do(make_call()), Unknown)


def test_slurms_own_no_is_passed_on_and_nothing_is_tried_again() -> None:
    cluster = _cluster()
    cluster.write_error, cluster.write_happens = Rejected("Invalid user id"), False
    outcome = Drain(hands(cluster)).do(make_call())
    assert isinstance(outcome, Failed)
    assert (outcome.kind, "Invalid user id" in outcome.error) == (FailureKind.PERMANENT, True)


def test_a_silent_controller_before_the_write_is_worth_another_try() -> None:
    cluster = _cluster()
    cluster.silent = True
    outcome = Drain(hands(cluster)).do(make_call())
    assert isinstance(outcome, Failed)
    assert (outcome.kind, cluster.written) == (FailureKind.RETRYABLE, [])


def test_the_spec_promises_what_the_engine_counts_on() -> None:
    spec = Drain(hands(_cluster())).spec
    assert (spec.takes_node_out, spec.sets_mark, spec.undo) == (True, "drain", "node.return")
    assert not spec.may_end_jobs


def test_a_second_do_of_the_same_run_writes_nothing_more() -> None:
    cluster = _cluster()
    verb = Drain(hands(cluster))
    first, second = verb.do(make_call()), verb.do(replace(make_call(), attempt=2))
    assert isinstance(first, Done)
    assert isinstance(second, Done)
    assert len(cluster.written) == 1
