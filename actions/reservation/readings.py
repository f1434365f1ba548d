"""Reads what the verbs on reservations decide on. Raises Unreadable where a decision would be a guess.

Used by every verb of this area. Changes nothing.
"""

from collections.abc import Callable, Iterable

from actions.cluster import Node, Reservation, Snapshot
from actions.contract import (
    Call,
    Failed,
    FailureKind,
    Refusal,
    Rejected,
    Unknown,
    UnknownNode,
    Unreadable,
    WriteUnknown,
)
from actions.hands import JobHands
from actions.reservation.contents import Ground
from actions.reservation.settings import Hands
from actions.settling import just_started, settles_at
from config.json_values import Json
from config.node_names import NodeName

_RESERVED = frozenset({"RESERVED", "MAINTENANCE"})


def job_hands(call: Call, hands: Hands) -> JobHands:
    """The hands that write reservations. Raises Refusal."""
    if call.cluster not in hands.jobs:
        raise Refusal(
            f"no cluster {call.cluster} in the configuration whose reservations can be written"
        )
    return hands.jobs[call.cluster]


def name_of(call: Call) -> str:
    """The reservation of the call. Raises Refusal."""
    name = call.arguments.get("name")
    if not isinstance(name, str) or not name:
        raise Refusal("no reservation named")
    return name


def nodes_of(value: Json) -> tuple[NodeName, ...]:
    """The nodes of an argument, each once. Raises Refusal where there is none."""
    names = value if isinstance(value, list | tuple) else []
    nodes = tuple(dict.fromkeys(NodeName(str(name)) for name in names))
    if not nodes:
        raise Refusal("no node named: an empty list of nodes is never meant")
    return nodes


def settled_snapshot(call: Call, hands: Hands) -> Snapshot:
    """A snapshot that may be acted on. Raises Unreadable shortly after a controller start."""
    if call.cluster not in hands.clusters:
        raise Refusal(f"no cluster {call.cluster} in the configuration")
    snapshot = call.seen.snapshot if call.seen else hands.clusters[call.cluster].snapshot()
    until = settles_at(snapshot.controller, hands.settings.quiet_after_start, call.now)
    if until is not None:
        raise Unreadable(just_started(snapshot.controller, until))
    return snapshot


def reservations(call: Call, hands: Hands) -> tuple[Reservation, ...]:
    """All reservations past any cache, or as they were seen for a whole plan."""
    if call.seen:
        return call.seen.snapshot.reservations
    return job_hands(call, hands).fresh_reservations()


def ground(call: Call, hands: Hands, wanted: Iterable[NodeName], snapshot: Snapshot) -> Ground:
    """What the nodes are judged from."""
    nodes = tuple(wanted)
    listed = reservations(call, hands)
    kept = {node for found in listed if found.active for node in found.nodes}
    known = {name: snapshot.nodes[name] for name in nodes if name in snapshot.nodes}
    for name, node in known.items():
        # A reservation that is gone since the snapshot still shows there as a flag of its nodes.
        if node.flags & _RESERVED and name not in kept and not call.seen:
            known[name] = _fresh(call, hands, node)
    orders = {name: hands.settings.hands_off(call.cluster, name) for name in nodes}
    return Ground(
        nodes=known,
        reservations=listed,
        hands_off={name: why for name, why in orders.items() if why},
    )


def _fresh(call: Call, hands: Hands, node: Node) -> Node:
    try:
        return hands.clusters[call.cluster].fresh_node(node.name)
    except UnknownNode:
        return node


def written(
    call: Call, hands: Hands, write: Callable[[JobHands], None]
) -> tuple[Reservation, ...] | Failed | Unknown:
    """Write once; all reservations as they are read back."""
    cluster = job_hands(call, hands)
    try:
        write(cluster)
    except WriteUnknown as error:
        return Unknown(why=str(error))
    except Unreadable as error:
        return Failed(error=f"nothing was written: {error}", kind=FailureKind.RETRYABLE)
    except (Rejected, UnknownNode, Refusal) as error:
        return Failed(error=f"Slurm said no: {error}", kind=FailureKind.PERMANENT)
    try:
        return cluster.fresh_reservations()
    except (Unreadable, Refusal) as error:
        return Unknown(why=f"written, but not read back: {error}")
