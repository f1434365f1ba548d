"""Gathers what the verdict on a silent host needs: ssh, its known ports, and another node's word.

Used by `actions.node` and `actions.power`, so that both mean the same by "dead". Looks only. A host
that answers ssh is asked nothing more.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from actions.cluster import Node, NodeBase
from actions.hands import NodeHands
from actions.host_verdict import Signs, Verdict, judge
from actions.remote_values import Reach, Reachability
from actions.vantage import Answer, References, Tried, Vantage
from config.node_names import NodeName

MOST_ASKED = 3
"""Other nodes that are asked until one of them could try."""
_IN_SERVICE = frozenset({NodeBase.IDLE, NodeBase.MIXED, NodeBase.ALLOCATED})
_NOWHERE = References(reached=0, named=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Eyes:
    """With what a host is looked at."""

    nodes: NodeHands
    vantage: Vantage | None = None
    """None: nothing but ssh, so no host ever counts as dead."""


def look(eyes: Eyes, node: Node, others: Mapping[NodeName, Node]) -> tuple[Reachability, Verdict]:
    """What ssh met, and the verdict. Never raises for what the network does."""
    reach = eyes.nodes.reach(node.name)
    references, tried = _NOWHERE, tuple[Tried, ...]()
    if eyes.vantage is not None and not reach.reach.host_alive:
        references = eyes.vantage.references()
        if reach.reach is not Reach.NOT_ASKED:
            tried = tuple(_tried(eyes.vantage, node, others))
    signs = Signs(reach=reach, responding=node.responding, references=references, tried=tried)
    return reach, judge(signs)


def _tried(vantage: Vantage, node: Node, others: Mapping[NodeName, Node]) -> Iterator[Tried]:
    """From the bot, then from other nodes until one of them could try."""
    address = node.address or node.name
    yield vantage.from_bot(node.name, address)
    for neighbour in neighbours(node, others):
        found = vantage.from_node(neighbour, node.name, address)
        yield found
        if found.answer is not Answer.NOT_ASKED:
            return


def neighbours(node: Node, others: Mapping[NodeName, Node]) -> tuple[NodeName, ...]:
    """Nodes in service that may be asked: those of another rack first, a switch may be what is broken."""
    fit = [
        other
        for other in others.values()
        if other.name != node.name
        and other.base in _IN_SERVICE
        and other.responding
        and not other.unknown_flags
    ]
    fit.sort(key=lambda other: (bool(other.features & node.features), other.name))
    return tuple(other.name for other in fit[:MOST_ASKED])
