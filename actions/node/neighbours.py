"""Which nodes near one dropped at the same time: three of them are one incident (promise 6). Pure.

Near means: in the same pool or partition, or with a feature in common (racks and switches are
features on most sites). Used by `actions.node.facts`.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from actions.cluster import Node, NodeBase
from actions.reasons import ReasonKind, classify, segments
from config.node_names import NodeName

_RECENT = timedelta(minutes=10)


def dropped_recently(
    node: Node, nodes: Iterable[Node], pool: frozenset[NodeName], now: datetime
) -> tuple[NodeName, ...]:
    """Nodes near this one that dropped within ten minutes, this one included.

    It counts in any case: its slurmd may be dead although the controller has not noticed yet.
    """
    reason = _first_words(node)
    return tuple(
        other.name
        for other in nodes
        if other.name == node.name
        or (
            _near(node, other, pool)
            and (_fell_silent(other, now) or _same_reason(other, reason, now))
        )
    )


def _near(node: Node, other: Node, pool: frozenset[NodeName]) -> bool:
    return (
        other.name in pool
        or bool(node.partitions & other.partitions)
        or bool(node.features & other.features)
    )


def _fell_silent(node: Node, now: datetime) -> bool:
    """A silent node that is not DOWN yet lost contact within SlurmdTimeout; nothing dates it."""
    if node.responding or node.draining:
        return False
    if node.base is not NodeBase.DOWN:
        return True
    return node.reason_at is not None and now - node.reason_at <= _RECENT


def _same_reason(node: Node, reason: str, now: datetime) -> bool:
    """The same words, given just now, numbers aside."""
    return (
        bool(reason)
        and node.out
        and node.reason_at is not None
        and now - node.reason_at <= _RECENT
        and _first_words(node) == reason
    )


def _first_words(node: Node) -> str:
    """What is said of it, without the numbers of this node; empty for our own marks."""
    if classify(node.reason).kind in {ReasonKind.MARK, ReasonKind.NONE}:
        return ""
    return segments(node.reason)[0].split("(", 1)[0].strip()
