"""Plays the records into empty projections. Called on the writer thread, by the ledger at a start
and by `audit_log.rebuild`. It never touches the ledger itself.
"""

from collections.abc import Iterator, Sequence

from audit_log.encoding import decode
from audit_log.projections import ProjectionCursor, Projector, drop_tables, make_tables
from audit_log.records import Record

CHUNK = 2000
"""Records in memory at a time."""


def replay(cursor: ProjectionCursor, projectors: Sequence[Projector]) -> int:
    """Empty projections, then every record in order; how many."""
    drop_tables(cursor, projectors)
    make_tables(cursor, projectors)
    count = 0
    for record in _records(cursor):
        for projector in projectors:
            projector.apply(cursor, record)
        count += 1
    return count


def _records(cursor: ProjectionCursor) -> Iterator[Record]:
    """Every record, as the writing connection sees it."""
    after = 0
    sql = "SELECT seq, record, digest FROM ledger WHERE seq > ? ORDER BY seq LIMIT ?"
    while rows := cursor.execute(sql, (after, CHUNK)):
        yield from (decode(text, digest) for _, text, digest in rows)
        after = rows[-1][0]
