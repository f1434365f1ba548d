"""node.observe: the facts of each cause of table A that this version decides."""

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actions.cluster import NodeBase, Partition, Reservation
from actions.contract import Done, Failed, Unknown, Wait
from actions.node.death import death, minute
from actions.node.facts import FACTS
from actions.node.fitting import first, last
from actions.node.observe import Observe
from actions.remote_values import HostFacts, Reach, Reachability, ServiceState
from actions.vantage import Answer as Seen
from actions.vantage import References, Tried
from config.json_values import JsonMap
from config.node_names import NodeName
from runbooks.facts import NODE_FACTS
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
    slurmd,
)
from tests.actions.node.hands import hands

OURS = "nw A1 [run-12/0a1b2c3d]"


def _facts(
    cluster: FakeCluster | None = None, nodes: FakeNodes | None = None, **changes: object
) -> JsonMap:
    outcome = Observe(hands(cluster or FakeCluster(), nodes)).do(make_call(**changes))
    assert isinstance(outcome, Done)
    return outcome.output


def _cluster(**changes: object) -> FakeCluster:
    return FakeCluster(nodes={NODE: make_node(**changes)})


def test_every_fact_is_declared_and_every_fact_of_the_causes_is_there() -> None:
    facts = _facts()
    assert set(facts) == set(FACTS)
    assert set(NODE_FACTS) <= set(facts)


def test_a1_a_dead_slurmd_on_a_living_host_with_the_minute_in_which_its_jobs_die() -> None:
    cluster = _cluster(base=NodeBase.ALLOCATED, flags=frozenset({"NOT_RESPONDING"}))
    cluster.jobs = (make_job(),)
    facts = _facts(cluster, FakeNodes(unit=slurmd(ServiceState.FAILED)))
    assert (facts["slurmd_state"], facts["host_alive"], facts["reach"]) == ("failed", True, "alive")
    assert facts["responding"] is False
    # Stopped at 17:17, SlurmdTimeout 300 s, pinged each 100 s: between 17:20:20 and 17:23:40.
    assert (facts["dies_at_earliest"], facts["dies_at_latest"]) == (
        "2026-11-30T17:20Z",
        "2026-11-30T17:24Z",
    )
    assert facts["job_count"] == 1
    assert facts["dropped_recently"] == 1


def test_the_minute_of_death_is_by_the_bots_clock() -> None:
    cluster = _cluster(flags=frozenset({"NOT_RESPONDING"}))
    nodes = FakeNodes(
        unit=slurmd(ServiceState.FAILED, since=NOW + timedelta(minutes=57)),
        facts=HostFacts(boot_id=BOOT, clock_offset_ms=3_600_000),
    )
    assert _facts(cluster, nodes)["dies_at_earliest"] == "2026-11-30T17:20Z"


def test_a_host_that_does_not_answer_leaves_null_and_never_a_guess() -> None:
    cluster = _cluster(flags=frozenset({"NOT_RESPONDING"}))
    nodes = FakeNodes(verdict=Reachability(reach=Reach.TIME_OUT, evidence="timed out"), facts=None)
    facts = _facts(cluster, nodes)
    unread = (
        "slurmd_state boot_id boot_changed gpus_seen memory_seen_mib cpus_seen kernel_tail "
        "previous_boot_tail dies_at_earliest dies_at_latest"
    )
    assert {name: facts[name] for name in unread.split()} == dict.fromkeys(unread.split())
    assert (facts["host_alive"], facts["reach_evidence"]) == (False, "timed out")


def test_a_bot_that_is_cut_off_knows_nothing_of_the_host() -> None:
    nodes = FakeNodes(verdict=Reachability(reach=Reach.NOT_ASKED, evidence="cut off"))
    assert _facts(None, nodes)["host_alive"] is None


def test_a3_a_boot_that_the_controller_has_not_heard_of() -> None:
    booted = HostFacts(boot_id=BOOT, booted_at=NOW - timedelta(minutes=4))
    down = _cluster(base=NodeBase.DOWN, flags=frozenset({"NOT_RESPONDING"}))
    assert _facts(down, FakeNodes(facts=booted))["boot_changed"] is True
    same = replace(booted, booted_at=NOW - timedelta(days=3) + timedelta(seconds=1))
    assert _facts(down, FakeNodes(facts=same))["boot_changed"] is False


def test_a_boot_since_our_drain_is_seen_by_its_id() -> None:
    cluster = _cluster(flags=frozenset({"DRAIN"}), reason=OURS)
    facts = _facts(cluster, marks=(make_mark(boot_id=OTHER_BOOT),))
    assert (facts["boot_changed"], facts["our_mark"], facts["reason_kind"]) == (True, True, "ours")


def test_a4_gpus_are_counted_on_both_sides() -> None:
    reason = "gres/gpu count reported lower than configured (7 < 8)"
    cluster = _cluster(flags=frozenset({"DRAIN", "INVALID_REG"}), reason=reason)
    facts = _facts(cluster, FakeNodes(facts=HostFacts(boot_id=BOOT, gpus_seen=7)))
    assert (facts["gpus_seen"], facts["gpus_configured"]) == (7, 8)
    assert (facts["reason_kind"], facts["holder"]) == ("internal", "slurm")
    assert facts["flags"] == ["DRAIN", "INVALID_REG"]


def test_a6_memory_and_cpus_are_read_on_both_sides() -> None:
    facts = _facts(None, FakeNodes(facts=HostFacts(boot_id=BOOT, memory_mib=900, cpus=32)))
    assert (facts["memory_seen_mib"], facts["memory_configured_mib"]) == (900, 1000)
    assert (facts["cpus_seen"], facts["cpus_configured"]) == (32, 64)


def test_a13_a_persons_drain_with_its_owner_and_age() -> None:
    cluster = _cluster(
        flags=frozenset({"DRAIN"}),
        reason="RMA 4711",
        reason_by="dana",
        reason_at=NOW - timedelta(hours=2),
    )
    facts = _facts(cluster)
    assert (facts["reason_kind"], facts["reason_by"]) == ("foreign", "dana")
    assert (facts["reason_age_s"], facts["holder"]) == (7200, "other")


@pytest.mark.parametrize("reason", ["nw A1 [run-12/ffffffff]", "nw A1 [run-99/0a1b2c3d]"])
def test_a_mark_that_our_ledger_does_not_know_is_foreign(reason: str) -> None:
    assert _facts(_cluster(flags=frozenset({"DRAIN"}), reason=reason))["reason_kind"] == "foreign"


def test_a18_a_missing_address_is_slurms_own_word() -> None:
    cluster = _cluster(base=NodeBase.DOWN, reason="NO NETWORK ADDRESS FOUND")
    assert _facts(cluster)["reason_kind"] == "internal"


def test_a21_partitions_and_reservations_are_named() -> None:
    cluster = _cluster(partitions=frozenset({"train", "gone"}))
    cluster.partitions = (Partition(name="train", state="DRAIN", nodes=(NODE,)),)
    cluster.reservations = (
        Reservation(name="old", nodes=(NODE,), starts_at=None, ends_at=None, active=False),
        Reservation(name="drv580", nodes=(NODE,), starts_at=None, ends_at=None),
    )
    facts = _facts(cluster)
    assert facts["partition_states"] == {"gone": "?", "train": "DRAIN"}
    assert facts["reservation"] == "drv580"


def test_a_blind_job_list_is_null_and_not_empty() -> None:
    cluster = _cluster(base=NodeBase.MIXED)
    cluster.blind = "PrivateData=jobs"
    facts = _facts(cluster)
    assert (facts["jobs"], facts["job_count"], facts["jobs_blind"]) == (
        None,
        None,
        "PrivateData=jobs",
    )


def test_nodes_that_dropped_together_are_counted_within_pool_partition_and_feature() -> None:
    def other(name: str, **changes: object) -> None:
        cluster.nodes[NodeName(name)] = make_node(name=NodeName(name), **changes)

    silent = frozenset({"NOT_RESPONDING"})
    cluster = _cluster(flags=silent)
    far = {"partitions": frozenset({"far"}), "features": frozenset({"rack9"})}
    other("gpu-02", flags=silent, **far)
    other("gpu-11", flags=silent)
    other("gpu-12", flags=silent, **far)
    other(
        "gpu-13",
        base=NodeBase.DOWN,
        flags=silent,
        reason="Not responding",
        reason_at=NOW - timedelta(minutes=11),
    )
    other(
        "gpu-14",
        base=NodeBase.DOWN,
        flags=silent,
        reason="Not responding",
        reason_at=NOW - timedelta(minutes=9),
    )
    other("gpu-15")
    facts = _facts(cluster)
    assert (facts["dropped_recently"], facts["dropped_nodes"]) == (4, "gpu-[01-02,11,14]")
    assert (facts["out_in_pool"], facts["pool_size"]) == (2, 2)


def test_the_same_reason_within_ten_minutes_is_one_incident_whatever_its_numbers() -> None:
    given = {"base": NodeBase.DOWN, "reason_at": NOW - timedelta(minutes=1)}
    cluster = _cluster(reason="Low RealMemory (reported:1 < 100.00% of configured:9)", **given)
    cluster.nodes[NodeName("gpu-02")] = make_node(
        name=NodeName("gpu-02"),
        reason="Low RealMemory (reported:2 < 100.00% of configured:9)",
        **given,
    )
    cluster.nodes[NodeName("gpu-03")] = make_node(
        name=NodeName("gpu-03"), reason="Low CPUs", **given
    )
    assert _facts(cluster)["dropped_nodes"] == "gpu-[01-02]"


def test_all_facts_of_the_worst_node_fit_in_one_record() -> None:
    long = '\\xff"<!channel>é' * 2000
    cluster = _cluster(
        reason="é" * 5000,
        flags=frozenset({"DRAIN"}),
        gres=long,
        partitions=frozenset({"train"}),
    )
    cluster.jobs = tuple(make_job(slurm_id=number, name=long) for number in range(500))
    nodes = FakeNodes(
        facts=HostFacts(boot_id=BOOT, kernel_tail=long, previous_boot_tail=long),
        verdict=Reachability(reach=Reach.ALIVE, evidence=long),
    )
    facts = _facts(cluster, nodes)
    assert facts["job_count"] == 500
    assert len(json.dumps(facts)) < 8000


def test_a_silent_controller_is_looked_at_again_and_an_unknown_node_is_refused() -> None:
    cluster = FakeCluster(silent=True)
    assert isinstance(Observe(hands(cluster)).do(make_call()), Unknown)
    call = make_call(node=NodeName("gpu-99"))
    assert isinstance(Observe(hands(FakeCluster())).do(call), Failed)


@pytest.mark.parametrize("base", [NodeBase.UNKNOWN, NodeBase.MIXED, NodeBase.DOWN])
def test_shortly_after_a_start_of_slurmctld_no_state_is_a_finding(base: NodeBase) -> None:
    cluster = _cluster(base=base)
    cluster.started = NOW - timedelta(seconds=10)
    outcome = Observe(hands(cluster)).do(make_call())
    assert isinstance(outcome, Wait)
    assert outcome.until == NOW + timedelta(seconds=50)
    assert outcome.why == "slurmctld of main has just started: wait until 17:21 UTC"
    assert outcome.seen["base"] == base.value
    settled = Observe(hands(cluster)).do(make_call(now=outcome.until))
    assert isinstance(settled, Done)


@given(
    st.integers(0, 10**9).map(lambda seconds: NOW + timedelta(seconds=seconds)),
    st.integers(1, 3600),
)
def test_the_window_of_death_holds_the_timeout_and_is_never_empty(
    stopped: datetime, seconds: int
) -> None:
    found = death(stopped, timedelta(seconds=seconds))
    assert found is not None
    assert stopped < found.earliest <= stopped + timedelta(seconds=seconds) <= found.latest
    assert minute(found.earliest) <= minute(found.latest, up=True)


def test_without_a_timeout_nothing_dies() -> None:
    assert death(NOW, timedelta(0)) is None


@given(st.text(max_size=60), st.integers(0, 60))
def test_text_is_cut_to_its_room_in_a_record_and_no_further(text: str, room: int) -> None:
    for cut, whole in ((first(text, room), text.startswith), (last(text, room), text.endswith)):
        assert whole(cut)
        assert len(json.dumps(cut)) - 2 <= room
    if len(json.dumps(text)) - 2 <= room:
        assert first(text, room) == last(text, room) == text


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """`Vantage`: nobody else gets an answer either."""

    reached: int = 3

    def references(self) -> References:
        return References(reached=self.reached, named=3)

    def from_bot(self, node: NodeName, address: str) -> Tried:
        return Tried(place="the bot", answer=Seen.SILENT, evidence="port 22")

    def from_node(self, neighbour: NodeName, node: NodeName, address: str) -> Tried:
        return Tried(place=neighbour, answer=Seen.SILENT, evidence="port 22")


TIME_OUT = Reachability(reach=Reach.TIME_OUT, evidence="Connection timed out")
GIVEN_UP = make_node(base=NodeBase.DOWN, flags=frozenset({"NOT_RESPONDING"}))


@pytest.mark.parametrize(
    "vantage, verdict", [(Elsewhere(), "dead"), (Elsewhere(reached=1), "silent"), (None, "silent")]
)
def test_a_host_is_dead_only_as_far_as_other_places_say_so(
    vantage: Elsewhere | None, verdict: str
) -> None:
    other = NodeName("gpu-02")
    cluster = FakeCluster(nodes={NODE: GIVEN_UP, other: make_node(name=other)})
    held = replace(hands(cluster, FakeNodes(verdict=TIME_OUT, facts=None)), vantage=vantage)
    done = Observe(held).do(make_call())
    assert isinstance(done, Done)
    assert done.output["host_verdict"] == verdict
    assert done.output["host_evidence"]


def test_a_bot_that_is_cut_off_waits_and_diagnoses_nothing() -> None:
    nodes = FakeNodes(verdict=TIME_OUT, facts=None)
    held = replace(hands(FakeCluster(nodes={NODE: GIVEN_UP}), nodes), vantage=Elsewhere(reached=0))
    waits = Observe(held).do(make_call())
    assert isinstance(waits, Wait)
    assert "reaches none of its 3 reference hosts" in waits.why
    assert waits.seen["host_verdict"] == "cut_off"


def test_a_host_that_answers_is_alive() -> None:
    done = Observe(hands(FakeCluster())).do(make_call())
    assert isinstance(done, Done)
    assert done.output["host_verdict"] == "alive"
