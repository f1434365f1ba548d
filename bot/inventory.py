"""The clusters' nodes as last seen, so that names are checked without asking a controller.

Filled by the worker at each tick from the shared snapshot; read on the acknowledging path, which
must not wait for anything.
"""

import logging
import threading
from collections.abc import Mapping

from actions.cluster import Overview, Snapshot
from actions.contract import Refusal, Unreadable
from actions.hands import ClusterHands
from config.ids import ClusterName
from config.node_names import NodeName, NodeNameError, NodeSet, expand, expand_unchecked
from config.permissions import Target

log = logging.getLogger(__name__)


class Inventory:
    """Nodes of every cluster."""

    def __init__(self, clusters: Mapping[ClusterName, ClusterHands]) -> None:
        """Knows nothing until `refresh`."""
        self._clusters = clusters
        self._guard = threading.Lock()
        self._seen: dict[ClusterName, Snapshot] = {}
        self._silent: dict[ClusterName, str] = {}
        self._sorted: dict[ClusterName, Overview] = {}
        """The same snapshots, sorted when somebody first asks whose jobs are where."""

    def refresh(self) -> None:
        """Take the newest snapshot of each cluster; one that does not answer keeps its last."""
        for name, hands in self._clusters.items():
            try:
                snapshot = hands.snapshot()
            except (Unreadable, Refusal) as problem:
                log.warning("cluster %s gave no snapshot: %s", name, problem)
                with self._guard:
                    self._silent[name] = str(problem)
                continue
            with self._guard:
                self._seen[name] = snapshot
                self._silent.pop(name, None)

    def trouble(self, cluster: ClusterName) -> str:
        """Why the last question to this cluster got no answer; empty when it did."""
        with self._guard:
            return self._silent.get(cluster, "")

    def snapshot(self, cluster: ClusterName) -> Snapshot | None:
        """The last snapshot of this cluster, None before the first."""
        with self._guard:
            return self._seen.get(cluster)

    def clusters(self) -> tuple[ClusterName, ...]:
        """All configured clusters."""
        return tuple(self._clusters)

    def cluster(self, name: str | None) -> ClusterName:
        """The named cluster, or the only one. Raises NodeNameError."""
        known = self.clusters()
        if name is None:
            if len(known) == 1:
                return known[0]
            raise NodeNameError(f"say which cluster with --cluster: {', '.join(known)}")
        if ClusterName(name) not in known:
            raise NodeNameError(f"there is no cluster {name!r}; there are {', '.join(known)}")
        return ClusterName(name)

    def resolve(self, expression: str, cluster: str | None) -> tuple[ClusterName, NodeSet]:
        """The nodes of an expression and the one cluster that has them all. Raises NodeNameError."""
        expand_unchecked(expression)  # the form first: its error does not depend on any cluster
        if cluster is not None or len(self.clusters()) == 1:
            name = self.cluster(cluster)
            return name, expand(expression, self._names(name))
        found = [name for name in self.clusters() if self._has_all(name, expression)]
        if len(found) == 1:
            return found[0], expand(expression, self._names(found[0]))
        if found:
            raise NodeNameError(
                f"{', '.join(found)} all have such nodes: say which one with --cluster"
            )
        raise NodeNameError(f"no cluster has all nodes of {expression!r}; nothing was done")

    def _names(self, cluster: ClusterName) -> frozenset[NodeName]:
        snapshot = self.snapshot(cluster)
        if snapshot is None:
            why = self.trouble(cluster) or "it was not asked yet"
            raise NodeNameError(
                f"cluster {cluster} has not answered since the bot started, so no node name can "
                f"be checked; nothing was done ({why})"
            )
        return frozenset(snapshot.nodes)

    def _has_all(self, cluster: ClusterName, expression: str) -> bool:
        try:
            expand(expression, self._names(cluster))
        except NodeNameError:
            return False
        return True

    def _overview(self, cluster: ClusterName) -> Overview | None:
        """The last snapshot, sorted once: each step of a run over thousands of nodes asks here."""
        with self._guard:
            snapshot, known = self._seen.get(cluster), self._sorted.get(cluster)
        if snapshot is None or (known is not None and known.snapshot is snapshot):
            return known
        known = Overview.of(snapshot)
        with self._guard:
            self._sorted[cluster] = known
        return known

    def target(self, cluster: ClusterName, nodes: NodeSet) -> Target:
        """The target of a permission question: partitions and job owners as last seen."""
        seen = self._overview(cluster)
        if seen is None:
            return Target(cluster=cluster, nodes=nodes)
        snapshot = seen.snapshot
        known = [snapshot.nodes[node] for node in nodes if node in snapshot.nodes]
        owners = {job.user for node in nodes for job in seen.jobs.get(node, ())}
        return Target(
            cluster=cluster,
            nodes=nodes,
            partitions={node.name: node.partitions for node in known},
            job_owners=frozenset(owners),
            blind=_blind(snapshot),
        )


def _blind(snapshot: Snapshot) -> str:
    """Why nobody can be told whose jobs are where; the list may be as long as the cluster."""
    more = len(snapshot.blind) - 1
    return "".join(snapshot.blind[:1]) + (f" (and {more} more like it)" if more > 0 else "")
