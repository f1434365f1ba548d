import csv
import io
import json
from datetime import timedelta
from hashlib import sha256

import pytest

from audit_log.ledger import Ledger
from audit_log.records import EventKind
from audit_log.search import AuditQuery, csv_lines, json_lines, search
from config.ids import ActorId, RunId
from tests.audit_log.ledgers import START, HandClock, append, event, fill


@pytest.fixture
def filled(ledger: Ledger, clock: HandClock) -> Ledger:
    """Records 2 to 7, a minute apart."""
    for happened in (
        event(action="node.drain"),
        event(EventKind.STEP_FINISHED, node="gpu-018", actor="p-aaaaaaaaaa"),
        event(EventKind.PLAN_MADE, run="run-2", node=None, nodes=["gpu-017", "gpu-040"]),
        event(EventKind.REQUEST_DENIED, run=None, node=None, nodes="gpu-[040-049]"),
        event(EventKind.HALT_SET, run=None, node=None, reason="fire"),
        event(EventKind.STEP_INTENDED, run="run-3", node="gpu-0170", action="service.start"),
    ):
        clock.move(60)
        append(ledger, happened)
    return ledger


@pytest.mark.parametrize(
    "query, found",
    [
        (AuditQuery(), [1, 2, 3, 4, 5, 6, 7]),
        (AuditQuery(actor=ActorId("p-aaaaaaaaaa")), [3]),
        (AuditQuery(target="gpu-017"), [2, 4]),
        (AuditQuery(target="gpu-042"), [5]),
        (AuditQuery(target="gpu-040"), [4, 5]),
        (AuditQuery(target="c1"), [2, 3, 4, 5, 6, 7]),
        (AuditQuery(run=RunId("run-1")), [2, 3]),
        (AuditQuery(action="step.intended"), [2, 7]),
        (AuditQuery(action="step"), [2, 3, 7]),
        (AuditQuery(action="node.drain"), [2]),
        (AuditQuery(action="ste"), []),
        (AuditQuery(action="%"), []),
        (AuditQuery(since=START + timedelta(minutes=3)), [4, 5, 6, 7]),
        (AuditQuery(until=START + timedelta(minutes=3)), [1, 2, 3]),
        (AuditQuery(since=START + timedelta(minutes=2), target="gpu-017"), [4]),
        (AuditQuery(target="' OR 1=1 --"), []),
    ],
)
def test_records_are_found_by_each_condition_and_by_all_together(
    filled: Ledger, query: AuditQuery, found: list[int]
) -> None:
    assert [record.seq for record in search(filled, query)] == found


def test_a_search_reads_beyond_one_chunk_and_stops_at_its_limit(ledger: Ledger) -> None:
    fill(ledger, 1200)
    query = AuditQuery(action="step.intended")
    assert len(list(search(ledger, query))) == 1200
    assert len(list(search(ledger, query, limit=501))) == 501


def test_an_export_as_json_lines_can_be_checked_without_this_program(filled: Ledger) -> None:
    prev = "0" * 64
    for line in json_lines(filled, AuditQuery()):
        exported = json.loads(line)
        text = json.dumps(exported["record"], sort_keys=True, separators=(",", ":"))
        assert sha256(text.encode()).hexdigest() == exported["digest"]
        assert exported["record"]["prev"] == prev
        prev = exported["digest"]
    assert prev == filled.head.digest


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_no_cell_of_the_csv_is_a_formula(ledger: Ledger, start: str) -> None:
    append(ledger, event(run=f"{start}HYPERLINK(A1)", node="gpu-1", actor=f"{start}x"))
    text = "".join(csv_lines(ledger, AuditQuery()))
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows[0][:4] == ["seq", "at", "kind", "actor"]
    assert len(rows) == 3
    assert rows[2][3] == f"'{start}x"
    for cell in rows[2]:
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))


def test_a_csv_row_holds_the_whole_record(filled: Ledger) -> None:
    rows = list(csv.DictReader(io.StringIO("".join(csv_lines(filled, AuditQuery())))))
    assert len(rows) == 7
    row = rows[3]
    assert row["kind"] == "plan.made"
    assert json.loads(row["data"]) == {"nodes": ["gpu-017", "gpu-040"]}
    assert row["at"] == "2026-03-01T02:33:00+00:00"
