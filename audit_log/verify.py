"""Checks a ledger file, also while the bot runs: `nodewarden audit verify`, and before a restore.

It finds any change inside the chain; with anchors also a cut tail and a chain that was computed
again from some record on. It reads with its own connection and changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from audit_log.anchors import Anchor, contradiction
from audit_log.chain import Break, Head, walk
from audit_log.database import Connection, ledger_schema, open_reader
from audit_log.encoding import decode
from audit_log.errors import StoreError
from audit_log.restoration import restores
from config.ids import InstanceId

CHUNK = 5_000
"""Rows in memory at a time."""

MOST_FINDINGS = 20
"""Further ones are not listed: the ledger is not to be trusted anyway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What verifying found."""

    records: int
    head: Head
    findings: tuple[Break, ...]
    anchors: int = 0
    """Anchors of this instance that were compared."""
    restores: int = 0
    """Restores that the chain tells of: each gave up records, which a person should know of."""

    @property
    def sound(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


def verify(path: Path, anchors: Sequence[Anchor] | None = None) -> Report:
    """Check the whole file, and against `anchors` where they are given.

    Raises StoreError when the file cannot be read as a ledger at all.
    """
    count, head, findings = _walk_all(path)
    reader = open_reader(path)
    try:
        findings = [*_schema_findings(reader), *findings]
        if anchors is None:
            return _report(count, head, findings)
        return _against(reader, _report(count, head, findings), anchors)
    finally:
        reader.close()


def _walk_all(path: Path) -> tuple[int, Head, list[Break]]:
    """The chain from the first record to the last: how many, the end, what is wrong."""
    reader = open_reader(path, raw_text=True)
    try:
        head, count = Head(), 0
        findings: list[Break] = []
        sql = "SELECT seq, record, digest FROM ledger WHERE seq > ? ORDER BY seq LIMIT ?"
        # From below any row: a sequence number of zero or less is a finding, not a blind spot.
        after = -(2**63)
        while (rows := reader.execute(sql, (after, CHUNK))) and len(findings) < MOST_FINDINGS:
            after, count = rows[-1][0], count + len(rows)
            while rows and len(findings) < MOST_FINDINGS:
                walked = walk(rows, head)
                head, rows = walked.head, rows[walked.count :]
                findings += [walked.found] if walked.found else []
        return count, head, findings
    finally:
        reader.close()


def _schema_findings(reader: Connection) -> list[Break]:
    """The table and its triggers must be as they were made: a generated column can lie otherwise."""
    rows = reader.execute("SELECT sql FROM sqlite_master WHERE tbl_name = 'ledger'")
    present = {_squeezed(sql) for (sql,) in rows if sql}
    wanted = {
        _squeezed(statement)
        for statement in ledger_schema()
        if "ON ledger" in statement or "TABLE ledger" in statement
    }
    missing = [f"missing: {text[:70]}" for text in sorted(wanted - present)]
    added = [f"not ours: {text[:70]}" for text in sorted(present - wanted)]
    return [Break(seq=0, problem=f"the schema was changed, {what}") for what in missing + added]


def _against(reader: Connection, report: Report, anchors: Sequence[Anchor]) -> Report:
    """The report with what the anchors say."""
    instance = instance_of(reader)
    own = [anchor for anchor in anchors if anchor.instance == instance]
    given_up = restores(reader.execute)
    findings = list(report.findings)
    for anchor in sorted(own, key=lambda one: one.seq):
        rows = reader.execute("SELECT digest FROM ledger WHERE seq = ?", (anchor.seq,))
        said = contradiction(anchor, report.head, rows[0][0] if rows else None, given_up)
        findings += [Break(seq=anchor.seq, problem=said)] if said else []
    if not own:
        problem = (
            f"no anchor is of this ledger (instance {instance}): it was replaced, or none went out"
        )
        findings.append(Break(seq=0, problem=problem))
    return Report(
        records=report.records,
        head=report.head,
        findings=tuple(findings[:MOST_FINDINGS]),
        anchors=len(own),
        restores=len(given_up),
    )


def instance_of(reader: Connection) -> InstanceId | None:
    """The instance that the first record names, where it can be read."""
    try:
        ((text, digest),) = reader.execute("SELECT record, digest FROM ledger WHERE seq = 1")
        return InstanceId(str(decode(text, digest).event.data["instance"]))
    except (ValueError, LookupError, TypeError, StoreError):
        return None


def _report(count: int, head: Head, findings: Sequence[Break]) -> Report:
    """A report without anchors."""
    return Report(records=count, head=head, findings=tuple(findings[:MOST_FINDINGS]))


def _squeezed(sql: str) -> str:
    """Without the differences in white space that SQLite keeps."""
    return " ".join(sql.split())
