"""What the ledger knows about having been restored: until an admin lifts it, nothing acts.

A projection of `ledger.restored` and `ledger.restore_confirmed`. A confirmation that names a run
frees that run; one without a run says that all is checked, and lifts the restriction.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from audit_log.database import Row
from audit_log.encoding import decode
from audit_log.projections import ProjectionCursor
from audit_log.records import EventKind, Record

Query = Callable[[str, Sequence[object]], list[Row]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """One restore that the chain itself tells of."""

    seq: int
    """Of its record, the first one after the backup's."""
    at: datetime
    lost_to: int
    """The last record that is known to have been given up."""

    def gave_up(self, seq: int, at: datetime) -> bool:
        """Whether something known of record `seq` at that time belongs to what was given up."""
        return self.seq <= seq <= self.lost_to and at <= self.at


class RestorationProjector:
    """Keeps which restore is open and which runs were confirmed since."""

    schema = """
    CREATE TABLE IF NOT EXISTS restores (
      seq INTEGER PRIMARY KEY NOT NULL,
      backup_head INTEGER NOT NULL,
      lost_to INTEGER NOT NULL,
      lifted_by INTEGER
    ) STRICT;
    CREATE TABLE IF NOT EXISTS restore_confirmations (
      run TEXT PRIMARY KEY NOT NULL,
      seq INTEGER NOT NULL
    ) STRICT;
    """
    tables = ("restores", "restore_confirmations")

    def apply(self, cursor: ProjectionCursor, record: Record) -> None:
        """Take one record in."""
        event = record.event
        if event.kind is EventKind.RESTORED:
            cursor.execute("DELETE FROM restore_confirmations")
            cursor.execute(
                "INSERT INTO restores (seq, backup_head, lost_to) VALUES (?, ?, ?)",
                (record.seq, event.data.get("backup_head", 0), event.data.get("lost_to", 0)),
            )
        elif event.kind is EventKind.RESTORE_CONFIRMED and event.run is not None:
            cursor.execute(
                "INSERT OR REPLACE INTO restore_confirmations (run, seq) VALUES (?, ?)",
                (event.run, record.seq),
            )
        elif event.kind is EventKind.RESTORE_CONFIRMED:
            cursor.execute(
                "UPDATE restores SET lifted_by = ? WHERE lifted_by IS NULL", (record.seq,)
            )


PENDING = "SELECT 1 FROM restores WHERE lifted_by IS NULL LIMIT 1"
"""A row when a restore is not lifted."""

MAY_ACT = """SELECT NOT EXISTS (SELECT 1 FROM restores WHERE lifted_by IS NULL)
  OR EXISTS (SELECT 1 FROM restore_confirmations WHERE run = ?)"""
"""Whether this run may act."""


def restores(query: Query) -> tuple[Restore, ...]:
    """Every recorded restore, read from the ledger; the projection only says where to look."""
    found = []
    for seq, text, digest in query(
        "SELECT seq, record, digest FROM ledger WHERE seq IN (SELECT seq FROM restores)", ()
    ):
        record = decode(text, digest)
        lost_to = record.event.data.get("lost_to", 0)
        if record.event.kind is EventKind.RESTORED and isinstance(lost_to, int):
            found.append(Restore(seq=seq, at=record.at, lost_to=lost_to))
    return tuple(found)
