"""Whether the bot gets at nodes as it should: a few of each cluster, asked every ten minutes.

Made by `bot.wiring`, which also makes it a duty of the worker and hangs it into `doctor`. Reads only.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta

from actions.cluster import Node, NodeBase
from bot.diagnostics import Finding
from bot.inventory import Inventory
from config.clock import Clock
from config.ids import ClusterName
from config.node_names import NodeName

EVERY = timedelta(minutes=10)
SAMPLE = 3
_IN_SERVICE = frozenset({NodeBase.IDLE, NodeBase.MIXED, NodeBase.ALLOCATED})

NodeFaults = Callable[[NodeName], tuple[str, ...]]
"""What is wrong with the way to one node."""


class NodeChecks:
    """Asks, remembers, and tells `doctor`."""

    def __init__(
        self, faults: Mapping[ClusterName, NodeFaults], inventory: Inventory, clock: Clock
    ) -> None:
        """`faults` has the clusters whose nodes are reached over the network; nothing is asked yet."""
        self._faults = faults
        self._inventory = inventory
        self._clock = clock
        self._last: timedelta | None = None
        self._turn = 0
        self._found: Mapping[ClusterName, tuple[Finding, ...]] = {}

    def tick(self) -> None:
        """Ask again when it is time; other nodes each time."""
        now = self._clock.now().monotonic
        if self._last is not None and now - self._last < EVERY:
            return
        if all(self._inventory.snapshot(name) is None for name in self._faults):
            return
        self._last = now
        self._found = {name: self._ask(name) for name in self._faults}
        self._turn += 1

    def findings(self) -> tuple[Finding, ...]:
        """For `doctor`: each fault, or which nodes were found in order."""
        return tuple(finding for found in self._found.values() for finding in found)

    def _ask(self, cluster: ClusterName) -> tuple[Finding, ...]:
        nodes = self._sample(cluster)
        faults = {node: self._faults[cluster](node) for node in nodes}
        bad = [text for texts in faults.values() for text in texts]
        if bad:
            return tuple(Finding(False, f"cluster {cluster}: {text}") for text in bad)
        if not nodes:
            text = f"cluster {cluster}: no node is in service, so no way to one was tried"
            return (Finding(True, text),)
        asked = ", ".join(nodes)
        return (Finding(True, f"cluster {cluster}: the way to {asked} is in order"),)

    def _sample(self, cluster: ClusterName) -> tuple[NodeName, ...]:
        """A few nodes in service, spread over the cluster."""
        snapshot = self._inventory.snapshot(cluster)
        nodes = () if snapshot is None else tuple(snapshot.nodes.values())
        fit = sorted(node.name for node in nodes if _in_service(node))
        if len(fit) <= SAMPLE:
            return tuple(fit)
        step = len(fit) // SAMPLE
        return tuple(fit[(self._turn + place * step) % len(fit)] for place in range(SAMPLE))


def _in_service(node: Node) -> bool:
    return node.base in _IN_SERVICE and node.responding and not node.unknown_flags
