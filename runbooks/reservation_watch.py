"""Reads our reservations again: which of them are gone, and which outlived the run that made them.

Called by the worker at each tick with the shared snapshots, and asked by `list marks` and `doctor`. One
that is gone is recorded: the next look of a run that needs it sees it too. One that is left by a run
that did not succeed is paged once, and so is what is there again: slurmctld forgets a delete and a
RESUME like any other write. Nothing is deleted here: a job may point to it.
"""

import json
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from actions.cluster import Snapshot
from audit_log.ledger import Ledger, Transaction
from audit_log.records import Event, EventKind
from config.actors import ENGINE
from config.clock import Clock, from_microseconds
from config.ids import ClusterName, RunId
from config.json_values import JsonMap
from runbooks.machine import RunState
from runbooks.open_marks import RESERVATION, Query
from runbooks.run_rows import select
from runbooks.unknown_marks import UnknownMark, unknown_marks

log = logging.getLogger(__name__)

SETTLES = timedelta(seconds=30)
"""A mark younger than this may not be in the snapshot yet (15 s old at most, hands 1)."""
_EARLY = timedelta(seconds=5)
"""slurmctld tells its start in whole seconds of its own clock."""
_CLEARED = (
    "SELECT max(at_us) FROM ledger WHERE kind = 'step.finished' AND cluster = ? "
    "AND (node = ? OR instr(record, ?)) "
    'AND (instr(record, \'"clears":\') OR instr(record, \'"outcome":"undone"\'))'
)
_ENDS = re.compile(r" until (\d{4}-\d\d-\d\d \d\d:\d\d) UTC\Z", re.ASCII)
_KEPT = (
    "SELECT marks.cluster, node, marks.run, at_us, text, state, open FROM marks "
    "LEFT JOIN runs ON runs.id = marks.run WHERE kind = 'reservation' ORDER BY marks.cluster, node"
)
Snapshots = Callable[[ClusterName], Snapshot | None]
"""The last snapshot of a cluster, None before the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One reservation of ours, as the ledger knows it."""

    cluster: ClusterName
    name: str
    run: RunId
    at: datetime
    text: str
    """What was written; empty while nobody knows whether it was."""
    state: str
    """Of its run."""
    open: bool

    @property
    def left(self) -> bool:
        """Whether its run is over and did not mean to leave it."""
        return not self.open and self.state != RunState.SUCCEEDED


def kept(query: Query) -> tuple[Kept, ...]:
    """All of them."""
    return tuple(
        Kept(
            cluster=ClusterName(cluster),
            name=name,
            run=RunId(run),
            at=from_microseconds(at_us),
            text=text,
            state=state or "",
            open=bool(open_),
        )
        for cluster, name, run, at_us, text, state, open_ in query(_KEPT, ())
    )


def left_over(query: Query, snapshot: Snapshots) -> tuple[Kept, ...]:
    """Those that are still there though their run is over and did not mean to leave them."""
    return tuple(mark for mark in kept(query) if mark.left and _there(mark, snapshot(mark.cluster)))


def unknown_to(ledger: Ledger, snapshot: Snapshot) -> tuple[UnknownMark, ...]:
    """Marks in this cluster that carry our name and that the ledger does not know."""
    rows = ledger.query("SELECT kind, node FROM marks WHERE cluster = ?", (snapshot.cluster,))
    return tuple(unknown_marks(snapshot, ledger.instance, {(row[0], row[1]) for row in rows}))


class ReservationWatch:
    """Compares the ledger's reservations with what the clusters say."""

    def __init__(
        self, ledger: Ledger, clock: Clock, snapshot: Snapshots, clusters: Sequence[ClusterName]
    ) -> None:
        """Nothing is compared yet."""
        self._ledger = ledger
        self._clock = clock
        self._snapshot = snapshot
        self._clusters = tuple(clusters)
        self._compared: dict[ClusterName, datetime] = {}
        """The start of slurmctld after which its cluster was searched for what came back."""
        self._unread = set(clusters)
        """Clusters that gave no snapshot since the start."""

    def tick(self) -> None:
        """One comparison."""
        for name in tuple(self._unread):
            self._list_unknown(name)
        for name in self._clusters:
            self._find_what_came_back(name)
        now = self._clock.now().wall
        for mark in kept(self._ledger.query):
            snapshot = self._snapshot(mark.cluster)
            if snapshot is None or now - mark.at < SETTLES or snapshot.taken_at < mark.at + SETTLES:
                continue
            if not _there(mark, snapshot):
                self._gone(mark, snapshot)
            elif mark.left:
                self._tell_once(mark)

    def _list_unknown(self, cluster: ClusterName) -> None:
        """Once after the start; `list marks`, `status` and `doctor` go on naming them."""
        snapshot = self._snapshot(cluster)
        if snapshot is None:
            return
        self._unread.discard(cluster)
        for mark in unknown_to(self._ledger, snapshot):
            log.warning(
                "%s: %s %s carries the name of %s of this bot, but its ledger does not know it",
                *(cluster, mark.kind, mark.name, mark.run),
            )

    def _find_what_came_back(self, cluster: ClusterName) -> None:
        """What a run took away, and a slurmctld that started since shows again: once for each start."""
        snapshot = self._snapshot(cluster)
        booted = snapshot.controller.booted_at if snapshot is not None else None
        if snapshot is None or booted is None or self._compared.get(cluster) == booted:
            return
        if snapshot.taken_at < booted + SETTLES:
            return
        self._compared[cluster] = booted
        for mark in unknown_to(self._ledger, snapshot):
            given = (cluster, mark.name, json.dumps(mark.name))
            ((at_us,),) = self._ledger.query(_CLEARED, given)
            if at_us is not None and from_microseconds(at_us) <= booted + _EARLY:
                self._tell_that_it_is_back(cluster, mark, booted)

    def _tell_that_it_is_back(
        self, cluster: ClusterName, mark: UnknownMark, booted: datetime
    ) -> None:
        why = (
            f"{mark.kind} {mark.name} of {mark.run} is there again: slurmctld started at "
            f"{booted:%H:%M} UTC and may have forgotten that it was taken away; take it away by hand"
        )
        key = f"nodewarden/{self._ledger.instance}/back/{cluster}/{mark.name}/{booted:%Y%m%d%H%M%S}"
        details = json.dumps({"run": mark.run, "cluster": cluster, "why": why})
        data: JsonMap = {"key": key, "summary": f"{cluster}: {why}"[:200], "details": details}

        def decide(transaction: Transaction) -> None:
            if not transaction.query("SELECT 1 FROM pages WHERE key = ?", (key,)):
                transaction.append(_event(EventKind.PAGE_INTENDED, cluster, data))

        self._ledger.commit(decide)

    def _gone(self, mark: Kept, snapshot: Snapshot) -> None:
        booted = snapshot.controller.booted_at
        forgot = booted is not None and booted >= mark.at
        data: JsonMap = {
            "mark": RESERVATION,
            "mark_on": mark.name,
            "of": mark.run,
            "why": _why_gone(mark, snapshot, forgot=forgot),
            "forgot": forgot,
        }

        def decide(transaction: Transaction) -> None:
            if self._still(transaction, mark) and not _under_way(transaction, mark):
                transaction.append(_event(EventKind.MARK_LOST, mark.cluster, data))
                if transaction.query(
                    "SELECT 1 FROM pages WHERE key = ? AND resolved = 0", (self._key(mark),)
                ):
                    transaction.append(self._page(mark, f"{mark.name} is gone", resolved=True))

        self._ledger.commit(decide)

    def _tell_once(self, mark: Kept) -> None:
        why = (
            f"reservation {mark.name} was left by {mark.run}, which is {mark.state}: when no job points "
            f"to it any more, `scontrol delete ReservationName={mark.name}`"
        )

        def decide(transaction: Transaction) -> None:
            told = transaction.query("SELECT 1 FROM pages WHERE key = ?", (self._key(mark),))
            if not told and self._still(transaction, mark):
                transaction.append(self._page(mark, why, resolved=False))

        self._ledger.commit(decide)

    def _still(self, transaction: Transaction, mark: Kept) -> bool:
        """Whether the ledger says the same as when it was read."""
        return mark in kept(transaction.query)

    def _key(self, mark: Kept) -> str:
        return f"nodewarden/{self._ledger.instance}/reservation/{mark.cluster}/{mark.name}"

    def _page(self, mark: Kept, why: str, *, resolved: bool) -> Event:
        details = json.dumps({"run": mark.run, "cluster": mark.cluster, "why": why})
        data: JsonMap = {
            "key": self._key(mark),
            "summary": f"{mark.cluster}: {why}"[:200],
            "details": details,
            "resolved": resolved,
        }
        return _event(EventKind.PAGE_INTENDED, mark.cluster, data)


def _there(mark: Kept, snapshot: Snapshot | None) -> bool:
    """Whether the cluster shows it; what was not asked yet is not there."""
    return snapshot is not None and any(found.name == mark.name for found in snapshot.reservations)


def _under_way(transaction: Transaction, mark: Kept) -> bool:
    """Whether some run is just making or taking away a reservation there: then it will say so itself."""
    for run in select(transaction.query, "open = 1 AND cluster = ?", (mark.cluster,)):
        key = run.intended
        if key is not None and run.steps[key].arguments.get("name") == mark.name:
            return True
    return False


def _why_gone(mark: Kept, snapshot: Snapshot, *, forgot: bool) -> str:
    ends = _ENDS.search(mark.text)
    ended = datetime.strptime(ends[1], "%Y-%m-%d %H:%M").replace(tzinfo=UTC) if ends else None
    if ended is not None and ended <= snapshot.taken_at:
        return f"reservation {mark.name} came to its end"
    booted = snapshot.controller.booted_at
    if forgot and booted is not None:
        return (
            f"reservation {mark.name} is gone: slurmctld started at {booted:%H:%M} UTC and may have "
            "forgotten it"
        )
    return f"reservation {mark.name} is gone: somebody else deleted it"


def _event(kind: EventKind, cluster: ClusterName, data: JsonMap) -> Event:
    return Event(kind=kind, actor=ENGINE.id, cluster=cluster, data=data)
