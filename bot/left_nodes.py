"""Locks on nodes that have left their cluster, which nobody would miss until the node comes back.

Asked by `status` and `doctor`. Reads only: an abort is what frees such a lock, because a node that is
missing from one answer of a controller has not left for good.
"""

from collections.abc import Callable
from dataclasses import dataclass

from actions.cluster import Snapshot
from audit_log.ledger import Ledger
from bot.diagnostics import Finding
from config.ids import ClusterName
from config.node_names import NodeName, fold

_HELD = "SELECT atom, run FROM locks WHERE instr(atom, '/node:') > 0 ORDER BY since_us, run, atom LIMIT ?"
MOST = 20_000
"""Locks that are looked at: as many as a node expression may name."""


@dataclass(frozen=True, slots=True)
class LeftNodes:
    """Compares locks with the last snapshots."""

    ledger: Ledger
    snapshot: Callable[[ClusterName], Snapshot | None]
    """The last one of a cluster, None before the first: then nothing is said about it."""

    def lines(self) -> tuple[str, ...]:
        """One sentence for each run that holds such locks."""
        found: dict[tuple[str, str], list[NodeName]] = {}
        for atom, run in self.ledger.query(_HELD, (MOST,)):
            cluster, _, node = atom.partition("/node:")
            if self._left(ClusterName(cluster), NodeName(node)):
                found.setdefault((run, cluster), []).append(NodeName(node))
        return tuple(
            f"{run} holds {fold(nodes)}, which {'is' if len(nodes) == 1 else 'are'} no longer in the "
            f"inventory of {cluster}; if that is for good, `abort {run}` frees it"
            for (run, cluster), nodes in found.items()
        )

    def findings(self) -> tuple[Finding, ...]:
        """The same for `doctor`."""
        return tuple(Finding(False, line) for line in self.lines())

    def _left(self, cluster: ClusterName, node: NodeName) -> bool:
        seen = self.snapshot(cluster)
        return seen is not None and node not in seen.nodes
