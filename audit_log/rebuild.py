"""Makes every projection again from the records: `nodewarden audit rebuild`. The ledger is only read."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from audit_log.ledger import Ledger, Urgency
from audit_log.projections import ProjectionCursor, Projector, make_tables
from audit_log.replay import replay


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What a rebuild did."""

    records: int
    differing: tuple[str, ...]
    """Tables that held something else before: somebody wrote to them, or a projector has a fault."""


def rebuild(ledger: Ledger) -> Rebuilt:
    """Drop and replay everything in one transaction: readers see the old tables or the new ones."""
    return ledger.amend(lambda cursor: _rebuild(cursor, ledger.projectors), Urgency.REST)


def fingerprints(cursor: ProjectionCursor, projectors: Sequence[Projector]) -> dict[str, str]:
    """A digest over the content of each projection table."""
    tables = [table for projector in projectors for table in projector.tables]
    return {table: _fingerprint(cursor, table) for table in tables}


def _rebuild(cursor: ProjectionCursor, projectors: Sequence[Projector]) -> Rebuilt:
    """On the writer thread."""
    make_tables(cursor, projectors)
    before = fingerprints(cursor, projectors)
    count = replay(cursor, projectors)
    after = fingerprints(cursor, projectors)
    differing = tuple(table for table in before if before[table] != after[table])
    return Rebuilt(records=count, differing=differing)


def _fingerprint(cursor: ProjectionCursor, table: str) -> str:
    """Digest over the sorted rows: storage order is SQLite's business."""
    rows = cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608  a name from a projector
    digest = hashlib.sha256()
    for line in sorted(repr(row) for row in rows):
        digest.update(line.encode("utf-8", "backslashreplace") + b"\n")
    return digest.hexdigest()
