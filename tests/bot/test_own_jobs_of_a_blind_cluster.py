"""Whose jobs are concerned is never read off a job list that cannot be believed."""

from dataclasses import dataclass, field, replace

import pytest

from actions.cluster import Snapshot
from audit_log.policy import decide
from bot.inventory import Inventory
from config.actors import Actor, ActorKind
from config.ids import ActorId
from config.node_names import NodeSet
from config.permissions import Allowed, Decision, Denied, Grant, Permission, Role, Scope
from tests.actions.fakes import CLUSTER, NODE, FakeCluster, make_job

RITA = Actor(
    id=ActorId("p-rita"), kind=ActorKind.PERSON, name="rita", roles=frozenset({"researcher"})
)
DRAIN = Permission.NODE_DRAIN
HIDDEN = "gpu-02 is MIXED with cpu=8, but no job on it is visible"


@dataclass(slots=True)
class HalfSeen(FakeCluster):
    """A cluster that says of its own snapshot what speaks against its job list."""

    against: tuple[str, ...] = field(default=())

    def snapshot(self) -> Snapshot:
        return replace(FakeCluster.snapshot(self), blind=self.against)


def verdict(against: tuple[str, ...], scope: Scope) -> Decision:
    """May rita drain the node on which only her job is seen?"""
    inventory = Inventory({CLUSTER: HalfSeen(jobs=(make_job(user="rita"),), against=against)})
    inventory.refresh()
    target = inventory.target(CLUSTER, NodeSet((NODE,)))
    role = Role(name="researcher", grants=(Grant(permissions=frozenset({DRAIN}), scope=scope),))
    return decide(RITA, DRAIN, target, {"researcher": role}, "rita")


def test_own_jobs_are_enough_where_the_list_can_be_believed() -> None:
    assert isinstance(verdict((), Scope(own_jobs=True)), Allowed)


@pytest.mark.parametrize(
    "against, said",
    [((HIDDEN,), HIDDEN), ((HIDDEN, "b", "c"), f"{HIDDEN} (and 2 more like it)")],
)
def test_a_blind_list_proves_no_ownership_and_the_denial_says_why(
    against: tuple[str, ...], said: str
) -> None:
    decision = verdict(against, Scope(own_jobs=True))
    assert isinstance(decision, Denied)
    assert f"whose jobs are concerned is not known: {said};" in decision.because


def test_a_grant_that_does_not_ask_for_owners_holds_on_a_blind_cluster() -> None:
    assert isinstance(verdict((HIDDEN,), Scope(max_nodes=1)), Allowed)
