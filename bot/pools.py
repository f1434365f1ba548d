"""Pools of nodes as the settings name them, resolved against the cluster as last seen."""

from collections.abc import Callable
from datetime import date, timedelta

from actions.cluster import Snapshot
from actions.contract import Unreadable
from config.clock import Clock
from config.ids import ClusterName
from config.node_names import NodeName
from config.settings import Cluster, Settings
from config.settings import Pool as PoolSettings
from runbooks.policy import Pool


class Pools:
    """Which nodes share a budget. Partitions change, so every question is answered afresh."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        snapshot: Callable[[ClusterName], Snapshot | None],
    ) -> None:
        """`snapshot` gives the last one of a cluster, None before the first."""
        self._settings = settings
        self._clock = clock
        self._snapshot = snapshot

    def of(self, cluster: ClusterName, node: NodeName) -> Pool | None:
        """The pool that counts this node: of several, the smallest budget's.

        Raises Unreadable before the cluster was seen: no budget known is not no budget.
        """
        found = [pool for pool in self._all(cluster) if node in pool.nodes]
        return min(found, key=lambda pool: (pool.max_out, pool.name), default=None)

    def nodes(self, cluster: ClusterName, node: NodeName) -> frozenset[NodeName]:
        """The nodes of that pool; empty where no pool counts the node."""
        pool = self.of(cluster, node)
        return pool.nodes if pool is not None else frozenset()

    def boot_time(self, cluster: ClusterName, node: NodeName) -> timedelta | None:
        """How long a boot takes in the pools of this node; None where none of them says."""
        found = [pool.boot_time for pool in self._all(cluster) if node in pool.nodes]
        return max((time for time in found if time is not None), default=None)

    def _all(self, cluster: ClusterName) -> list[Pool]:
        settings = self._settings.clusters[cluster]
        today = self._clock.now().wall.date()
        return [
            self._pool(cluster, name, pool, _away(settings, today))
            for name, pool in settings.pools.items()
        ]

    def _pool(
        self, cluster: ClusterName, name: str, pool: PoolSettings, away: frozenset[NodeName]
    ) -> Pool:
        nodes = frozenset(pool.nodes or ())
        snapshot = self._snapshot(cluster)
        if snapshot is None and pool.partitions:
            raise Unreadable(f"the nodes of pool {name}: {cluster} has not answered yet")
        for partition in snapshot.partitions if snapshot else ():
            if partition.name in pool.partitions:
                nodes |= frozenset(partition.nodes)
        return Pool(
            name=name,
            nodes=nodes,
            max_out=pool.max_out.of(len(nodes - away)),
            rma=nodes & away,
            boot_time=pool.boot_time,
        )


def _away(settings: Cluster, today: date) -> frozenset[NodeName]:
    """Nodes sent for repair whose exception has not run out."""
    found: frozenset[NodeName] = frozenset()
    for entry in settings.rma:
        if entry.until >= today:
            found |= frozenset(entry.nodes)
    return found
