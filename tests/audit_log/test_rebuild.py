from pathlib import Path

from audit_log.ledger import Ledger
from audit_log.rebuild import fingerprints, rebuild
from audit_log.verify import verify
from tests.audit_log.ledgers import Counts, append, event, fill, open_ledger, unlocked


def content(ledger: Ledger) -> dict[str, list[tuple[object, ...]]]:
    tables = [table for projector in ledger.projectors for table in projector.tables]
    return {table: ledger.query(f"SELECT * FROM {table}") for table in tables}


def test_projections_made_again_are_what_they_were(ledger: Ledger) -> None:
    fill(ledger, 30)
    append(ledger, event(node=None, nodes="gpu-[001-003]"))
    before = content(ledger)
    head = ledger.head
    done = rebuild(ledger)
    assert done.records == 32
    assert done.differing == ()
    assert content(ledger) == before
    assert before["counts"]
    assert len(before["ledger_targets"]) == 3
    assert ledger.head == head


def test_a_projection_that_somebody_changed_is_named_and_put_right(path: Path) -> None:
    ledger = open_ledger(path, projectors=[Counts()])
    fill(ledger, 7)
    before = content(ledger)
    ledger.close()
    raw = unlocked(path)
    raw.execute("UPDATE counts SET n = 99")
    raw.execute("DROP TABLE last_runs")
    raw.close()
    ledger = open_ledger(path, projectors=[Counts()])
    assert rebuild(ledger).differing == ("counts", "last_runs")
    assert content(ledger) == before
    ledger.close()
    assert verify(path).records == 8


def test_a_rebuild_is_one_transaction(ledger: Ledger) -> None:
    """A reader that began before sees the old tables until it ends."""
    fill(ledger, 5)
    reader = ledger._store.reader()
    reader.execute("BEGIN")
    before = reader.execute("SELECT * FROM counts")
    rebuild(ledger)
    assert reader.execute("SELECT * FROM counts") == before
    reader.close()


def test_fingerprints_tell_contents_apart(ledger: Ledger) -> None:
    first = ledger.amend(lambda cursor: fingerprints(cursor, ledger.projectors))
    append(ledger, event())
    second = ledger.amend(lambda cursor: fingerprints(cursor, ledger.projectors))
    assert {name for name in first if first[name] != second[name]} == {"counts", "last_runs"}
