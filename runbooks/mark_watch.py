"""Reads our open drains again: Slurm forgets the last seconds of a killed controller (hands 1).

Called by the worker at each tick with the shared snapshots. A drain of ours that is gone is recorded
and, when the controller started anew since, paged: it is not set again by itself, because nobody
can tell a forgotten drain from one that a person lifted. Reservations: `runbooks.reservation_watch`.
"""

import json
from collections.abc import Callable
from datetime import datetime, timedelta

from actions.cluster import Snapshot
from audit_log.ledger import Ledger, Transaction
from audit_log.records import Event, EventKind
from config.actors import ENGINE
from config.clock import Clock, from_microseconds
from config.ids import ClusterName, RunId
from config.json_values import JsonMap
from config.node_names import NodeName

SETTLES = timedelta(seconds=30)
"""A mark younger than this may not be in the snapshot yet (15 s old at most, hands 1)."""


class MarkWatch:
    """Compares marks with what the clusters say."""

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
            "SELECT cluster, node, run, at_us FROM marks WHERE kind = 'drain' AND NOT EXISTS "
            "(SELECT 1 FROM locks WHERE atom = marks.cluster || '/node:' || marks.node)"
        )
        for cluster, node, run, at_us in rows:
            at = from_microseconds(at_us)
            snapshot = self._snapshot(ClusterName(cluster))
            if snapshot is None or now - at < SETTLES or snapshot.taken_at < at + SETTLES:
                continue
            seen = snapshot.nodes.get(NodeName(node))
            if seen is not None and not seen.draining:
                self._lost(snapshot, NodeName(node), RunId(run), at)

    def _lost(self, snapshot: Snapshot, node: NodeName, run: RunId, at: datetime) -> None:
        booted = snapshot.controller.booted_at
        forgot = booted is not None and booted >= at
        why = (
            f"{node} is no longer drained: slurmctld started at {booted:%H:%M} UTC and may have "
            "forgotten it"
            if forgot and booted is not None
            else f"{node} is no longer drained: somebody else resumed it"
        )
        data: JsonMap = {"mark": "drain", "why": why, "forgot": forgot}

        def decide(transaction: Transaction) -> None:
            still = transaction.query(
                "SELECT 1 FROM marks WHERE cluster = ? AND node = ? AND run = ? AND kind = 'drain'",
                (snapshot.cluster, node, run),
            )
            if not still:
                return
            event = _event(EventKind.MARK_LOST, snapshot.cluster, node, data)
            transaction.append(event)
            if forgot:
                transaction.append(self._page(snapshot.cluster, node, run, why))

        self._ledger.commit(decide)

    def _page(self, cluster: ClusterName, node: NodeName, run: RunId, why: str) -> Event:
        key = f"nodewarden/{self._ledger.instance}/mark/{cluster}/{node}"
        details = json.dumps({"run": run, "cluster": cluster, "why": why})
        data: JsonMap = {"key": key, "summary": f"{cluster}: {why}"[:200], "details": details}
        return _event(EventKind.PAGE_INTENDED, cluster, node, data)


def _event(kind: EventKind, cluster: ClusterName, node: NodeName, data: JsonMap) -> Event:
    return Event(kind=kind, actor=ENGINE.id, cluster=cluster, node=node, data=data)
