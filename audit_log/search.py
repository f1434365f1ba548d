"""Finding records and giving them away: `audit query` and `audit export`, also from Slack.

Reads in chunks on the calling thread's read-only connection. An export holds the stored text
itself, so that whoever gets it can check the digests without this program.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from audit_log.encoding import canonical, decode
from audit_log.ledger import Ledger
from audit_log.records import Record
from config.clock import microseconds
from config.ids import ActorId, RunId

CHUNK = 500
"""Rows read in one statement."""

COLUMNS = ("seq", "at", "kind", "actor", "cluster", "node", "run", "step", "data", "digest")
"""Of the CSV export."""

_STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """What to look for; None asks nothing."""

    actor: ActorId | None = None
    target: str | None = None
    """A node or a cluster."""
    run: RunId | None = None
    action: str | None = None
    """A kind (`step.intended`), its first word (`step`), or an action (`node.drain`)."""
    since: datetime | None = None
    """At or after."""
    until: datetime | None = None
    """Before."""


def search(ledger: Ledger, query: AuditQuery, limit: int | None = None) -> Iterator[Record]:
    """Matching records in order of `seq`."""
    for text, digest in _matching(ledger, query, limit):
        yield decode(text, digest)


def json_lines(ledger: Ledger, query: AuditQuery) -> Iterator[str]:
    """One line per record: the digest, and the stored text as it is."""
    for text, digest in _matching(ledger, query, None):
        yield f'{{"digest":{json.dumps(digest)},"record":{text}}}\n'


def csv_lines(ledger: Ledger, query: AuditQuery) -> Iterator[str]:
    """A head line, then one line per record, safe to open in a spreadsheet."""
    yield _csv_line(COLUMNS)
    for record in search(ledger, query):
        event = record.event
        yield _csv_line(
            (
                str(record.seq),
                record.at.isoformat(),
                event.kind,
                event.actor,
                event.cluster or "",
                event.node or "",
                event.run or "",
                event.step or "",
                canonical(event.data),
                record.digest,
            )
        )


def _matching(ledger: Ledger, query: AuditQuery, limit: int | None) -> Iterator[tuple[str, str]]:
    """Text and digest of each matching record."""
    where, values = _where(query)
    # Only fixed fragments are joined here; every value is a parameter.
    sql = f"SELECT seq, record, digest FROM ledger WHERE {where} ORDER BY seq LIMIT ?"  # noqa: S608
    after, left = 0, limit
    while left is None or left > 0:
        size = CHUNK if left is None else min(CHUNK, left)
        rows = ledger.query(sql, (after, *values, size))
        yield from ((text, digest) for _, text, digest in rows)
        if len(rows) < size:
            return
        after = rows[-1][0]
        left = None if left is None else left - len(rows)


def _where(query: AuditQuery) -> tuple[str, list[object]]:
    """The condition and its values."""
    target = "node = ? OR cluster = ? OR seq IN (SELECT seq FROM ledger_targets WHERE node = ?)"
    action = (
        "kind = ? OR substr(kind, 1, length(?) + 1) = ? || '.'"
        " OR json_extract(record, '$.event.data.action') = ?"
    )
    asked: list[tuple[str, object]] = [
        ("actor = ?", query.actor),
        (target, query.target),
        ("run = ?", query.run),
        (action, query.action),
        ("at_us >= ?", None if query.since is None else microseconds(query.since)),
        ("at_us < ?", None if query.until is None else microseconds(query.until)),
    ]
    given = [(text, value) for text, value in asked if value is not None]
    values = [value for text, value in given for _ in range(text.count("?"))]
    return " AND ".join(["seq > ?", *(f"({text})" for text, _ in given)]), values


def _csv_line(cells: Iterable[str]) -> str:
    """One line; a cell that a spreadsheet would compute becomes text."""
    line = io.StringIO(newline="")
    # RFC 4180 ends lines in CR LF; only then does the writer quote a lone CR in a cell.
    csv.writer(line).writerow(
        f"'{cell}" if cell.startswith(_STARTS_A_FORMULA) else cell for cell in cells
    )
    return line.getvalue()
