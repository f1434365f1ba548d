"""Reads our edits of partitions again: a reconfigure and each start of slurmctld undo them (hands 2).

Called by the worker at each tick with the shared snapshots. An edit that is gone is recorded and paged
once; it is not written again by itself, because by then slurm.conf may say otherwise on purpose.
"""

import json
from collections.abc import Callable
from datetime import timedelta

from actions.cluster import Snapshot
from audit_log.ledger import Ledger, Transaction
from audit_log.records import Event, EventKind
from config.actors import ENGINE
from config.clock import Clock, from_microseconds
from config.ids import ClusterName, RunId
from config.json_values import JsonMap

KIND = "partition"
SETTLES = timedelta(seconds=30)
"""An edit younger than this may not be in the snapshot yet (15 s old at most, hands 1)."""


class PartitionWatch:
    """Compares our edits with what the clusters say."""

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        snapshot: Callable[[ClusterName], Snapshot | None],
    ) -> None:
        """`snapshot` gives the last one of a cluster, None before the first."""
        self._ledger = ledger
        self._clock = clock
        self._snapshot = snapshot

    def tick(self) -> None:
        """One comparison."""
        now = self._clock.now().wall
        rows = self._ledger.query(
            "SELECT cluster, node, run, text, at_us FROM marks WHERE kind = ? AND text <> ''",
            (KIND,),
        )
        for cluster, partition, run, node, at_us in rows:
            at = from_microseconds(at_us)
            snapshot = self._snapshot(ClusterName(cluster))
            if snapshot is None or now - at < SETTLES or snapshot.taken_at < at + SETTLES:
                continue
            found = next((one for one in snapshot.partitions if one.name == partition), None)
            if found is None or node not in found.nodes:
                self._gone(ClusterName(cluster), partition, node, RunId(run))

    def _gone(self, cluster: ClusterName, partition: str, node: str, run: RunId) -> None:
        why = (
            f"{node} is no longer in partition {partition}, into which {run} wrote it: slurmctld was "
            "started or reconfigured, and slurm.conf does not have it"
        )
        data: JsonMap = {"mark": KIND, "mark_on": partition, "why": why, "forgot": True}
        key = f"nodewarden/{self._ledger.instance}/mark/{cluster}/partition/{partition}"
        page: JsonMap = {
            "key": key,
            "summary": f"{cluster}: {why}"[:200],
            "details": json.dumps({"run": run, "cluster": cluster, "why": why}),
        }

        def decide(transaction: Transaction) -> None:
            still = transaction.query(
                "SELECT 1 FROM marks WHERE cluster = ? AND node = ? AND run = ? AND kind = ?",
                (cluster, partition, run, KIND),
            )
            if still:
                for kind, said in ((EventKind.MARK_LOST, data), (EventKind.PAGE_INTENDED, page)):
                    transaction.append(
                        Event(kind=kind, actor=ENGINE.id, cluster=cluster, data=said)
                    )

        self._ledger.commit(decide)
