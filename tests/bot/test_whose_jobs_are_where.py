"""Owners of the jobs on some nodes, as last seen; the jobs are sorted once for each snapshot."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actions.cluster import Job, Overview, Snapshot
from bot.inventory import Inventory
from config.node_names import NodeName, NodeSet
from tests.actions.fakes import CLUSTER, FakeCluster, make_job, make_node

NAMES = [NodeName(f"gpu-{number}") for number in range(4)]
JOBS = st.builds(
    lambda user, nodes, state: make_job(user=user, nodes=tuple(nodes), state=state),
    st.sampled_from(["ann", "bob", "cat"]),
    st.lists(st.sampled_from(NAMES), max_size=4),
    st.sampled_from(["RUNNING", "PENDING", "COMPLETING", "SUSPENDED", "FAILED", "NEW_WORD"]),
)


def cluster(*jobs: Job) -> FakeCluster:
    return FakeCluster(nodes={name: make_node(name=name) for name in NAMES}, jobs=jobs)


@given(st.lists(JOBS, max_size=6), st.sets(st.sampled_from(NAMES)))
def test_owners_are_those_whose_work_may_be_on_one_of_the_nodes(
    jobs: list[Job], asked: set[NodeName]
) -> None:
    hands = cluster(*jobs)
    inventory = Inventory({CLUSTER: hands})
    inventory.refresh()
    snapshot = hands.snapshot()
    owners = {job.user for node in asked for job in snapshot.jobs_on(node)}
    assert inventory.target(CLUSTER, NodeSet.of(asked)).job_owners == owners


def test_jobs_are_sorted_once_for_each_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    sorted_: list[Snapshot] = []
    plain = Overview.of

    def of(snapshot: Snapshot) -> Overview:
        sorted_.append(snapshot)
        return plain(snapshot)

    monkeypatch.setattr("bot.inventory.Overview.of", of)
    hands = cluster(make_job(user="ann", nodes=(NAMES[0],)))
    inventory = Inventory({CLUSTER: hands})
    inventory.refresh()
    for name in NAMES:
        inventory.target(CLUSTER, NodeSet((name,)))
    assert len(sorted_) == 1
    hands.jobs = (make_job(user="bob", nodes=(NAMES[0],)),)
    inventory.refresh()
    assert inventory.target(CLUSTER, NodeSet((NAMES[0],))).job_owners == {"bob"}
    assert len(sorted_) == 2
