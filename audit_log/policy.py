"""May this actor do this, there? Pure; asked by the gate when something is requested and again when
it is about to be done.

Default is denied. One grant must cover the whole target: limits of several grants are not added up,
because a person reading the roles could not foresee the sum. The sentences go into the ledger, so
they name roles and nodes, never a person or a user name.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from config.actors import Actor
from config.node_names import NodeSet, expand_unchecked
from config.permissions import (
    Allowed,
    Decision,
    Denied,
    Grant,
    Permission,
    Role,
    Scope,
    Target,
)


def decide(
    actor: Actor,
    permission: Permission,
    target: Target,
    roles: Mapping[str, Role],
    os_user_of_actor: str | None,
) -> Decision:
    """Allowed by which role, or denied with the reason and the roles that would be enough.

    `os_user_of_actor` is the OS user to whom jobs of this person belong, where one is known.
    """
    obstacles: list[str] = []
    for name in sorted(actor.roles & roles.keys()):
        for grant in _grants(roles[name], permission):
            obstacle = _obstacle(grant.scope, target, os_user_of_actor)
            if obstacle is None:
                return Allowed(
                    role=name, because=f"role {name} allows {permission} {_place(target)}"
                )
            obstacles.append(f"role {name} {obstacle}")
    enough = _enough(permission, target, roles)
    reason = "; ".join(obstacles) if obstacles else _no_role(actor, roles, permission)
    return Denied(
        missing=permission,
        because=f"{permission} {_place(target)} is not allowed: {reason}; {_way_out(enough)}",
        enough=enough,
    )


def _grants(role: Role, permission: Permission) -> Iterable[Grant]:
    """The grants of `role` that name this permission."""
    return (grant for grant in role.grants if permission in grant.permissions)


def _obstacle(scope: Scope, target: Target, os_user: str | None) -> str | None:
    """Why `target` lies outside `scope`; None when it lies inside."""
    return (
        _cluster_obstacle(scope, target)
        or _partition_obstacle(scope, target)
        or _node_obstacle(scope, target)
        or _size_obstacle(scope, target)
        or _owner_obstacle(scope, target, os_user)
    )


def _cluster_obstacle(scope: Scope, target: Target) -> str | None:
    if scope.clusters is None or target.cluster in scope.clusters:
        return None
    return f"reaches only cluster {_listed(scope.clusters)}"


def _partition_obstacle(scope: Scope, target: Target) -> str | None:
    """A node counts as inside only when all of its partitions are: taking it out hits them all."""
    if scope.partitions is None:
        return None
    outside = [
        node
        for node in target.nodes
        if not target.partitions.get(node) or not target.partitions[node] <= scope.partitions
    ]
    if target.nodes.names and not outside:
        return None
    reach = f"reaches only nodes of partition {_listed(scope.partitions)}"
    return f"{reach}{_not_among(NodeSet.of(outside))}"


def _node_obstacle(scope: Scope, target: Target) -> str | None:
    if scope.nodes is None:
        return None
    outside = NodeSet.of(set(target.nodes) - _expanded(scope.nodes))
    if target.nodes.names and not outside.names:
        return None
    return f"reaches only nodes {scope.nodes}{_not_among(outside)}"


def _size_obstacle(scope: Scope, target: Target) -> str | None:
    count = max(len(target.nodes), target.in_request)
    if scope.max_nodes is None or count <= scope.max_nodes:
        return None
    return f"allows at most {scope.max_nodes} nodes in one request, these are {count}"


def _owner_obstacle(scope: Scope, target: Target, os_user: str | None) -> str | None:
    """No job at all is not "every job is mine": it would open every idle node to everybody. Nor is
    a list from which jobs of others may be missing.
    """
    if not scope.own_jobs:
        return None
    if os_user is None:
        return "reaches only one's own jobs, and no OS user is known for this actor"
    if target.blind:
        return f"reaches only one's own jobs, and whose jobs are concerned is not known: {target.blind}"
    if not target.job_owners:
        return "reaches only one's own jobs, and none is concerned here"
    others = len(target.job_owners - {os_user})
    if others:
        return f"reaches only one's own jobs, and jobs of {others} other user(s) are concerned"
    return None


def _enough(permission: Permission, target: Target, roles: Mapping[str, Role]) -> tuple[str, ...]:
    """Roles that would allow this whoever asks: those limited to own jobs are no answer."""
    return tuple(
        name
        for name in sorted(roles)
        if any(
            not grant.scope.own_jobs and _obstacle(grant.scope, target, None) is None
            for grant in _grants(roles[name], permission)
        )
    )


def _no_role(actor: Actor, roles: Mapping[str, Role], permission: Permission) -> str:
    """The reason when no role of the actor names the permission at all."""
    held = sorted(actor.roles & roles.keys())
    if not held:
        return "this actor has no role"
    return f"{'roles' if len(held) > 1 else 'role'} {_listed(held)} does not include {permission}"


def _way_out(enough: tuple[str, ...]) -> str:
    """What the person can do."""
    if not enough:
        return "no configured role would be enough"
    return f"role {' or '.join(enough)} would be enough"


def _place(target: Target) -> str:
    """The target in words."""
    where = f"on {target.nodes}" if target.nodes.names else "without a node"
    return f"{where} of cluster {target.cluster}" if target.cluster else where


def _not_among(outside: NodeSet) -> str:
    return f", not {outside}" if outside.names else ", and no node is named"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


@lru_cache(maxsize=256)
def _expanded(expression: str) -> frozenset[str]:
    """Expanding is far slower than deciding, and roles name few expressions."""
    return frozenset(expand_unchecked(expression))
