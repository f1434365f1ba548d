"""node.await and evidence.save."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from actions.cluster import NodeBase
from actions.contract import Done, Failed, FailureKind, Outcome, Unknown, Wait
from actions.node.evidence import SaveEvidence
from actions.node.verbs import actions
from actions.node.wait_for import WaitFor
from actions.remote_values import CommandResult
from tests.actions.fakes import (
    NODE,
    NOW,
    FakeCluster,
    FakeNodes,
    make_call,
    make_job,
    make_mark,
    make_node,
)
from tests.actions.node.hands import hands


def _await(condition: str, cluster: FakeCluster, **more: str) -> Outcome:
    call = make_call(arguments={"condition": condition, **more})
    return WaitFor(hands(cluster)).do(call)


def _cluster(**changes: object) -> FakeCluster:
    return FakeCluster(nodes={NODE: make_node(**changes)})


@pytest.mark.parametrize(
    ("condition", "changes", "so"),
    [
        ("responding", {}, True),
        ("responding", {"flags": frozenset({"INVALID_REG"})}, True),
        ("responding", {"flags": frozenset({"NOT_RESPONDING"})}, False),
        ("responding", {"base": NodeBase.UNKNOWN}, False),
        ("registered", {}, True),
        ("registered", {"flags": frozenset({"INVALID_REG"})}, False),
        ("idle", {}, True),
        ("idle", {"base": NodeBase.MIXED}, False),
        ("idle", {"cpus_allocated": 4}, False),
        ("drained", {"flags": frozenset({"DRAIN"})}, True),
        ("drained", {}, False),
        ("drained", {"flags": frozenset({"DRAIN", "COMPLETING"})}, False),
        ("drained", {"flags": frozenset({"DRAIN"}), "base": NodeBase.MIXED}, False),
    ],
)
def test_a_condition_is_done_or_waits(condition: str, changes: dict[str, object], so: bool) -> None:
    outcome = _await(condition, _cluster(**changes))
    assert isinstance(outcome, Done if so else Wait)


def test_a_drain_of_ours_that_somebody_lifted_is_not_waited_for() -> None:
    call = make_call(arguments={"condition": "drained"}, marks=(make_mark(),))
    lifted = WaitFor(hands(_cluster())).do(call)
    assert isinstance(lifted, Failed)
    assert "our drain is gone" in lifted.error
    busy = _cluster(flags=frozenset({"DRAIN"}), base=NodeBase.ALLOCATED)
    assert isinstance(WaitFor(hands(busy)).do(call), Wait)


def test_a_suspended_job_on_an_idle_node_is_still_work() -> None:
    cluster = _cluster(flags=frozenset({"DRAIN"}))
    cluster.jobs = (make_job(state="SUSPENDED"),)
    assert isinstance(_await("drained", cluster), Wait)


def test_drained_counts_only_when_seen_twice() -> None:
    class Flickers(FakeCluster):
        looks = 0

        def fresh_jobs(self, node: object) -> tuple[object, ...]:  # type: ignore[override]
            Flickers.looks += 1
            return (make_job(),) if Flickers.looks == 2 else ()  # noqa: PLR2004

    cluster = Flickers(nodes={NODE: make_node(flags=frozenset({"DRAIN"}))})
    assert isinstance(_await("drained", cluster), Wait)
    assert Flickers.looks == 2


def test_a_blind_job_list_is_not_an_empty_node() -> None:
    cluster = _cluster(flags=frozenset({"DRAIN"}))
    cluster.blind = "PrivateData=jobs"
    outcome = _await("drained", cluster)
    assert isinstance(outcome, Wait)
    assert "PrivateData" in outcome.why


def test_the_deadline_ends_the_wait_with_what_is_missing() -> None:
    cluster = _cluster(flags=frozenset({"NOT_RESPONDING"}))
    assert isinstance(_await("responding", cluster, deadline="2026-11-30T17:21Z"), Wait)
    outcome = _await("responding", cluster, deadline="2026-11-30T17:20Z")
    assert isinstance(outcome, Failed)
    assert "does not answer" in outcome.error


@pytest.mark.parametrize(
    "arguments",
    [{"condition": "asleep"}, {"condition": "idle", "deadline": "soon"}, {}],
)
def test_words_that_are_not_known_are_refused(arguments: dict[str, str]) -> None:
    outcome = WaitFor(hands(FakeCluster())).do(make_call(arguments=arguments))
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.REFUSED


def test_a_silent_controller_is_asked_again() -> None:
    assert isinstance(_await("idle", FakeCluster(silent=True)), Unknown)


def test_evidence_keeps_logs_reason_and_jobs() -> None:
    cluster = _cluster(reason="Not responding")
    cluster.jobs = (make_job(name="a<!channel>&`id` "),)
    nodes = FakeNodes(log=CommandResult(exit_code=0, output="NVRM: Xid 79\n"))
    outcome = SaveEvidence(hands(cluster, nodes)).do(make_call())
    assert isinstance(outcome, Done)
    assert outcome.output["kernel_log"] == "NVRM: Xid 79"
    assert outcome.output["reason"] == "Not responding"
    assert outcome.output["jobs"] == "7 ann RUNNING 8 GPUs, a<!channel>&`id` "
    assert outcome.output["saved_at"] == f"{NOW:%Y-%m-%dT%H:%M:%SZ}"
    assert cluster.written == nodes.done == []


def test_a_log_that_cannot_be_read_says_so_and_stops_nothing() -> None:
    nodes = FakeNodes(log=CommandResult(exit_code=None, lost="ssh: Connection refused"))
    outcome = SaveEvidence(hands(FakeCluster(), nodes)).do(make_call())
    assert isinstance(outcome, Done)
    assert outcome.output["kernel_log"] == "not read: ssh: Connection refused"


def test_the_largest_evidence_fits_in_one_record() -> None:
    cluster = _cluster(reason="é" * 9000)
    cluster.jobs = tuple(make_job(name="x" * 500, slurm_id=number) for number in range(900))
    nodes = FakeNodes(log=CommandResult(exit_code=0, output="\\xff <x>\n" * 100_000))
    outcome = SaveEvidence(hands(cluster, nodes)).do(make_call())
    assert isinstance(outcome, Done)
    assert len(json.dumps(outcome.output)) < 8000
    assert "and 890 more" in str(outcome.output["jobs"])


def test_the_area_offers_its_verbs_and_says_which_write() -> None:
    verbs = {verb.spec.name: verb.spec.looks_only for verb in actions(hands(FakeCluster()))}
    assert verbs == {
        "node.observe": True,
        "node.drain": False,
        "node.return": False,
        "node.reboot": False,
        "partition.restore": False,
        "partition.write": False,
        "spare.choose": True,
        "spare.name": True,
        "node.await": True,
        "evidence.save": True,
    }


def test_what_only_looks_never_writes() -> None:
    cluster, nodes = _cluster(flags=frozenset({"DRAIN"})), FakeNodes()
    for verb in actions(hands(cluster, nodes)):
        if verb.spec.looks_only:
            call = make_call(arguments={"condition": "drained"})
            verb.look(call)
            verb.do(replace(call, now=NOW + timedelta(seconds=1)))
    assert cluster.written == nodes.done == []
