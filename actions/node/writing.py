"""What every write on a node has in common: look once more, write once, read back.

Used by the verbs of this area that write. A write that may have happened is Unknown,
never Failed; nothing is written when the last look could not be believed.
"""

from collections.abc import Callable
from dataclasses import dataclass

from actions.cluster import Node, Snapshot
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
from actions.hands import ClusterHands, NodeChanges
from actions.node import readings
from actions.node.settings import Hands
from actions.ownership import UNKNOWN_BOOT, Holding, holding


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """The controller's own record right before a write."""

    snapshot: Snapshot
    node: Node
    holding: Holding


def last_look(call: Call, hands: Hands) -> Before | Failed:
    """The node and who holds it, past any cache. The host was asked by `look` and is not asked again."""
    try:
        snapshot = readings.cluster_of(call, hands).snapshot()
        node = readings.fresh_node(call, hands)
        scene = readings.scene(call, hands, snapshot, node, UNKNOWN_BOOT)
    except Unreadable as error:
        return Failed(error=f"nothing was written: {error}", kind=FailureKind.RETRYABLE)
    except Refusal as error:
        return Failed(error=str(error), kind=FailureKind.REFUSED)
    return Before(snapshot=snapshot, node=node, holding=holding(scene, call))


def written(
    call: Call, hands: Hands, write: Callable[[ClusterHands], None]
) -> Node | Failed | Unknown:
    """Write once; the node as it is read back."""
    return _written(call, hands, lambda: write(hands.clusters[call.cluster]))


def changed(
    call: Call, hands: Hands, write: Callable[[NodeChanges], None]
) -> Node | Failed | Unknown:
    """The same for what not every back end can do; who calls has asked whether this one can."""
    return _written(call, hands, lambda: write(hands.changes[call.cluster]))


def _written(call: Call, hands: Hands, write: Callable[[], None]) -> Node | Failed | Unknown:
    try:
        write()
    except WriteUnknown as error:
        return Unknown(why=str(error))
    except Unreadable as error:
        return Failed(error=f"nothing was written: {error}", kind=FailureKind.RETRYABLE)
    except (Rejected, UnknownNode, Refusal) as error:
        return Failed(error=f"Slurm said no: {error}", kind=FailureKind.PERMANENT)
    try:
        return readings.fresh_node(call, hands)
    except (Unreadable, Refusal) as error:
        return Unknown(why=f"written, but not read back: {error}")
