"""Marks of this bot that nobody looks after: reservations that their run left, and marks of our name
that the ledger does not know.

Asked by `list marks`, `status` and `doctor`. Reads only, from the last snapshots: a person takes them away.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from actions.cluster import Snapshot
from audit_log.ledger import Ledger
from bot.diagnostics import Finding
from config.ids import ClusterName
from runbooks.reservation_watch import left_over, unknown_to


@dataclass(frozen=True, slots=True)
class LeftMarks:
    """Compares marks with the last snapshots."""

    ledger: Ledger
    clusters: Callable[[], Iterable[ClusterName]]
    snapshot: Callable[[ClusterName], Snapshot | None]
    """The last one of a cluster, None before the first: then nothing is said about it."""

    def lines(self) -> tuple[str, ...]:
        """One sentence for each."""
        return (*self._left(), *self._unknown())

    def findings(self) -> tuple[Finding, ...]:
        """The same for `doctor`."""
        return tuple(Finding(False, line) for line in self.lines())

    def _left(self) -> Iterable[str]:
        for mark in left_over(self.ledger.query, self.snapshot):
            yield (
                f"{mark.cluster}: reservation {mark.name} was left by {mark.run} ({mark.state}): "
                f"`scontrol delete ReservationName={mark.name}` when no job points to it"
            )

    def _unknown(self) -> Iterable[str]:
        for cluster in self.clusters():
            snapshot = self.snapshot(cluster)
            for mark in unknown_to(self.ledger, snapshot) if snapshot else ():
                yield (
                    f"{cluster}: {mark.kind} {mark.name} carries the name of {mark.run} of this bot, but "
                    "its ledger does not know it: a person decides, the bot leaves it"
                )
