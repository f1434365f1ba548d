from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit_log.policy import decide
from config.actors import ENGINE, Actor, ActorKind
from config.ids import ActorId, ClusterName
from config.node_names import NodeName, NodeSet
from config.permissions import Allowed, Denied, Grant, Permission, Role, Scope, Target

DRAIN = Permission.NODE_DRAIN


def actor(*roles: str) -> Actor:
    return Actor(
        id=ActorId("p-1"), kind=ActorKind.PERSON, name="Ann Uniquename", roles=frozenset(roles)
    )


def role(name: str, *permissions: Permission, **scope: Any) -> Role:
    return Role(
        name=name,
        grants=(Grant(permissions=frozenset(permissions or {DRAIN}), scope=Scope(**scope)),),
    )


def target(*nodes: str, cluster: str | None = "c1", **more: Any) -> Target:
    return Target(
        cluster=ClusterName(cluster) if cluster else None, nodes=NodeSet.of(nodes), **more
    )


def held(*roles: Role) -> Mapping[str, Role]:
    return {one.name: one for one in roles}


ADMIN = role("admin", *Permission)


@given(st.sampled_from(Permission), st.sets(st.sampled_from(["viewer", "gone", "x"])))
def test_without_a_grant_everything_is_denied(permission: Permission, names: set[str]) -> None:
    roles = held(Role(name="viewer", grants=()), ADMIN)
    decision = decide(actor(*names), permission, target("gpu-1"), roles, "ann")
    assert isinstance(decision, Denied)
    assert decision.missing is permission
    assert decision.enough == ("admin",)


def test_the_engine_has_no_right_of_its_own() -> None:
    assert isinstance(decide(ENGINE, DRAIN, target("gpu-1"), held(ADMIN), None), Denied)


def test_an_unlimited_grant_allows_and_names_the_role() -> None:
    decision = decide(actor("admin"), DRAIN, target("gpu-1"), held(ADMIN), None)
    assert decision == Allowed(
        role="admin", because="role admin allows node.drain on gpu-1 of cluster c1"
    )


def test_a_role_that_no_longer_exists_gives_nothing() -> None:
    assert isinstance(decide(actor("old"), DRAIN, target("gpu-1"), held(ADMIN), None), Denied)


IN_TRAIN = {NodeName("gpu-1"): frozenset({"train"})}
IN_BOTH = {NodeName("gpu-1"): frozenset({"train", "debug"})}


@pytest.mark.parametrize(
    "scope, wanted, os_user, allowed",
    [
        ({"clusters": frozenset({"c1"})}, target("gpu-1"), None, True),
        ({"clusters": frozenset({"c1"})}, target("gpu-1", cluster="c2"), None, False),
        ({"clusters": frozenset({"c1"})}, target(cluster=None), None, False),
        ({"nodes": "gpu-[1-4]"}, target("gpu-1", "gpu-4"), None, True),
        ({"nodes": "gpu-[1-4]"}, target("gpu-1", "gpu-5"), None, False),
        ({"nodes": "gpu-[1-4]"}, target(), None, False),
        ({"partitions": frozenset({"train"})}, target("gpu-1", partitions=IN_TRAIN), None, True),
        ({"partitions": frozenset({"train"})}, target("gpu-1", partitions=IN_BOTH), None, False),
        ({"partitions": frozenset({"train"})}, target("gpu-1"), None, False),
        ({"partitions": frozenset({"train"})}, target(), None, False),
        ({"max_nodes": 2}, target("gpu-1", "gpu-2"), None, True),
        ({"max_nodes": 2}, target("gpu-1", "gpu-2", "gpu-3"), None, False),
        ({"max_nodes": 2}, target(), None, True),
        ({"own_jobs": True}, target("gpu-1", job_owners=frozenset({"ann"})), "ann", True),
        ({"own_jobs": True}, target("gpu-1", job_owners=frozenset({"ann", "bob"})), "ann", False),
        ({"own_jobs": True}, target("gpu-1", job_owners=frozenset({"bob"})), "ann", False),
        ({"own_jobs": True}, target("gpu-1"), "ann", False),
        ({"own_jobs": True}, target("gpu-1", job_owners=frozenset({"ann"})), None, False),
    ],
)
def test_each_kind_of_limit_holds(
    scope: dict[str, Any], wanted: Target, os_user: str | None, allowed: bool
) -> None:
    decision = decide(actor("r"), DRAIN, wanted, held(role("r", **scope)), os_user)
    assert isinstance(decision, Allowed) == allowed


def test_limits_of_several_grants_are_not_added_up() -> None:
    roles = held(role("a", nodes="gpu-1"), role("b", nodes="gpu-2"))
    assert isinstance(decide(actor("a", "b"), DRAIN, target("gpu-1"), roles, None), Allowed)
    both = decide(actor("a", "b"), DRAIN, target("gpu-1", "gpu-2"), roles, None)
    assert isinstance(both, Denied)


def test_the_sentence_says_why_and_which_role_would_be_enough() -> None:
    roles = held(ADMIN, role("oncall", max_nodes=2), role("viewer", Permission.NODE_READ))
    wanted = target("gpu-1", "gpu-2", "gpu-3")
    decision = decide(actor("oncall", "viewer"), DRAIN, wanted, roles, None)
    assert isinstance(decision, Denied)
    assert decision.because == (
        "node.drain on gpu-[1-3] of cluster c1 is not allowed: role oncall allows at most 2 nodes"
        " in one request, these are 3; role admin would be enough"
    )
    assert decision.enough == ("admin",)


def test_only_roles_that_reach_this_target_are_named_as_enough() -> None:
    roles = held(role("small", nodes="gpu-1"), role("own", own_jobs=True))
    decision = decide(actor(), DRAIN, target("gpu-2"), roles, "ann")
    assert isinstance(decision, Denied)
    assert decision.enough == ()
    assert "no configured role would be enough" in decision.because
    assert "this actor has no role" in decision.because


def test_the_sentence_names_no_person() -> None:
    roles = held(role("own", own_jobs=True), ADMIN)
    wanted = target("gpu-1", job_owners=frozenset({"bobuser"}))
    decision = decide(actor("own"), DRAIN, wanted, roles, "annuser")
    assert isinstance(decision, Denied)
    for name in ("Uniquename", "bobuser", "annuser"):
        assert name not in decision.because


scopes = st.builds(
    Scope,
    clusters=st.none() | st.frozensets(st.sampled_from(["c1", "c2"])),
    nodes=st.none() | st.sampled_from(["gpu-[1-2]", "gpu-3"]),
    own_jobs=st.booleans(),
    max_nodes=st.none() | st.integers(0, 3),
)
targets = st.builds(
    Target,
    cluster=st.none() | st.sampled_from([ClusterName("c1"), ClusterName("c2")]),
    nodes=st.sets(st.sampled_from(["gpu-1", "gpu-2", "gpu-3"])).map(NodeSet.of),
    job_owners=st.frozensets(st.sampled_from(["ann", "bob"])),
)


@given(scopes, targets, st.sampled_from([None, "ann"]))
def test_a_limit_never_allows_what_the_grant_without_it_denies(
    scope: Scope, wanted: Target, os_user: str | None
) -> None:
    roles = held(
        Role(name="r", grants=(Grant(permissions=frozenset({DRAIN}), scope=scope),)), ADMIN
    )
    limited = decide(actor("r"), DRAIN, wanted, roles, os_user)
    other = decide(actor("r"), Permission.NODE_RETURN, wanted, roles, os_user)
    assert isinstance(other, Denied)
    if isinstance(limited, Denied):
        assert "admin" in limited.enough
        assert isinstance(decide(actor("admin"), DRAIN, wanted, roles, os_user), Allowed)
    elif scope.own_jobs:
        assert wanted.job_owners == {"ann"}
