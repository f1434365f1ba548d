"""Somebody who owns the file changes it with raw SQL. Every row is tried."""

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from audit_log.anchors import Anchor
from audit_log.encoding import canonical
from audit_log.ledger import Ledger
from audit_log.records import EventKind
from audit_log.verify import verify
from tests.audit_log.ledgers import START, Counts, append, event, fill, open_ledger, unlocked

ROWS = 24


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Anchor]:
    """A closed ledger and the anchor of its last record."""
    path = tmp_path_factory.mktemp("sound") / "ledger.db"
    ledger = open_ledger(path, projectors=[Counts()])
    fill(ledger, ROWS - 2)
    append(ledger, event(EventKind.HALT_SET, run=None, node=None, reason="the last one"))
    head = ledger.head
    anchor = Anchor(instance=ledger.instance, seq=head.seq, digest=head.digest, at=START)
    ledger.close()
    return path, anchor


@pytest.fixture
def copy(sound: tuple[Path, Anchor], tmp_path: Path) -> Callable[[], Path]:
    """Makes fresh copies of it."""
    made = iter(range(10_000))

    def fresh() -> Path:
        target = tmp_path / f"{next(made)}.db"
        shutil.copyfile(sound[0], target)
        return target

    return fresh


def test_an_untouched_ledger_is_sound(sound: tuple[Path, Anchor]) -> None:
    report = verify(sound[0], [sound[1]])
    assert report.sound
    assert report.records == ROWS
    assert report.head.digest == sound[1].digest
    assert report.anchors == 1


def test_each_part_of_each_record_changed_is_found(copy: Callable[[], Path]) -> None:
    for seq in range(1, ROWS + 1):
        path = copy()
        raw = unlocked(path)
        ((text,),) = raw.execute("SELECT record FROM ledger WHERE seq = ?", (seq,))
        for changed in changes(json.loads(text)):
            raw.execute("UPDATE ledger SET record = ? WHERE seq = ?", (changed, seq))
            findings = [found for found in verify(path).findings if found.seq]
            assert [found.seq for found in findings] == [seq], changed
        raw.close()


def test_each_record_changed_together_with_its_digest_is_found(copy: Callable[[], Path]) -> None:
    for seq in range(1, ROWS):
        path = copy()
        raw = unlocked(path)
        ((text,),) = raw.execute("SELECT record FROM ledger WHERE seq = ?", (seq,))
        payload = json.loads(text)
        payload["event"]["actor"] = "p-ffffffffff"
        write(raw, seq, payload)
        raw.close()
        assert [found.seq for found in verify(path).findings if found.seq] == [seq + 1]


def test_each_digest_changed_is_found(copy: Callable[[], Path]) -> None:
    for seq in range(1, ROWS + 1):
        path = copy()
        raw = unlocked(path)
        raw.execute("UPDATE ledger SET digest = ? WHERE seq = ?", ("0" * 64, seq))
        raw.execute("UPDATE ledger SET digest = upper(digest) WHERE seq = ?", (seq,))
        raw.close()
        assert seq in [found.seq for found in verify(path).findings]


def test_each_row_deleted_inside_the_chain_is_found(copy: Callable[[], Path]) -> None:
    for seq in range(1, ROWS):
        path = copy()
        raw = unlocked(path)
        raw.execute("DELETE FROM ledger WHERE seq = ?", (seq,))
        raw.close()
        assert seq in [found.seq for found in verify(path).findings]


def test_each_row_deleted_and_the_rest_renumbered_is_found(copy: Callable[[], Path]) -> None:
    for seq in range(1, ROWS):
        path = copy()
        raw = unlocked(path)
        raw.execute("DELETE FROM ledger WHERE seq = ?", (seq,))
        for later in range(seq + 1, ROWS + 1):
            raw.execute("UPDATE ledger SET seq = ? WHERE seq = ?", (later - 1, later))
        raw.close()
        assert seq in [found.seq for found in verify(path).findings]


def test_each_pair_of_neighbours_swapped_is_found(copy: Callable[[], Path]) -> None:
    for seq in range(1, ROWS):
        path = copy()
        raw = unlocked(path)
        for old, new in ((seq, 10**6), (seq + 1, seq), (10**6, seq + 1)):
            raw.execute("UPDATE ledger SET seq = ? WHERE seq = ?", (new, old))
        raw.close()
        assert seq in [found.seq for found in verify(path).findings]


def test_each_row_put_in_twice_is_found(copy: Callable[[], Path]) -> None:
    for seq in range(1, ROWS + 1):
        for place in (ROWS + 1, 0, -seq):
            path = copy()
            raw = unlocked(path)
            raw.execute(
                "INSERT INTO ledger (seq, record, digest)"
                " SELECT ?, record, digest FROM ledger WHERE seq = ?",
                (place, seq),
            )
            raw.close()
            assert any("schema" not in found.problem for found in verify(path).findings)


def test_each_cut_tail_is_found_with_the_anchor_and_only_with_it(
    copy: Callable[[], Path], sound: tuple[Path, Anchor]
) -> None:
    for kept in range(ROWS):
        path = copy()
        raw = unlocked(path)
        raw.execute("DELETE FROM ledger WHERE seq > ?", (kept,))
        restore_schema(raw, sound[0])
        raw.close()
        assert verify(path).sound
        assert not verify(path, [sound[1]]).sound


def test_a_chain_computed_again_from_any_row_is_found_with_the_anchor(
    copy: Callable[[], Path], sound: tuple[Path, Anchor]
) -> None:
    for first in range(1, ROWS + 1):
        path = copy()
        raw = unlocked(path)
        rechain(raw, first)
        restore_schema(raw, sound[0])
        raw.close()
        assert verify(path).sound, "the forgery itself is without a fault"
        report = verify(path, [sound[1]])
        assert [found.seq for found in report.findings] == [ROWS], first


def test_another_ledger_in_its_place_is_found_with_the_anchor(
    tmp_path: Path, sound: tuple[Path, Anchor]
) -> None:
    other = open_ledger(tmp_path / "other.db")
    fill(other, ROWS + 5)
    other.close()
    assert verify(other.path).sound
    assert not verify(other.path, [sound[1]]).sound


@pytest.mark.parametrize(
    "old, new",
    [
        ("'$.event.actor'", "'$.event.node'"),
        (") STRICT", ")"),
        ("kind TEXT GENERATED ALWAYS AS (json_extract(record, '$.event.kind')) VIRTUAL,", ""),
    ],
)
def test_a_changed_definition_of_the_table_is_found(
    copy: Callable[[], Path], old: str, new: str
) -> None:
    path = copy()
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("PRAGMA writable_schema=ON")
    raw.execute("UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name='ledger'", (old, new))
    raw.close()
    assert any("schema" in found.problem for found in verify(path).findings)


def test_a_missing_trigger_is_found(copy: Callable[[], Path]) -> None:
    path = copy()
    unlocked(path).close()
    assert len(verify(path).findings) == 3


def test_an_added_trigger_is_found(copy: Callable[[], Path]) -> None:
    path = copy()
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute(
        "CREATE TRIGGER quiet AFTER INSERT ON ledger WHEN NEW.kind = 'halt.set'"
        " BEGIN UPDATE settings SET value = ''; END"
    )
    raw.close()
    assert ["not ours" in found.problem for found in verify(path).findings] == [True]


def test_bytes_that_are_no_text_are_a_finding_not_a_crash(copy: Callable[[], Path]) -> None:
    path = copy()
    raw = unlocked(path)
    raw.execute("UPDATE ledger SET record = CAST(x'7b2261223a22ff227d' AS TEXT) WHERE seq = 5")
    raw.execute("UPDATE ledger SET digest = CAST(x'ff' AS TEXT) WHERE seq = 9")
    raw.close()
    assert {5, 9} <= {found.seq for found in verify(path).findings}


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE ledger SET record = record",
        "UPDATE ledger SET seq = 99 WHERE seq = 2",
        "DELETE FROM ledger WHERE seq = 2",
        "DELETE FROM ledger",
        "REPLACE INTO ledger (seq, record, digest) SELECT seq, record, digest FROM ledger LIMIT 1",
        "INSERT OR REPLACE INTO ledger (seq, record, digest) VALUES (3, '{}', 'x')",
        "INSERT INTO ledger (seq, record, digest) SELECT 99, record, digest FROM ledger LIMIT 1",
        "INSERT INTO ledger (seq, record, digest) SELECT max(seq) + 1, record, digest FROM ledger",
        "INSERT INTO ledger (seq, record, digest)"
        " SELECT 99, json_set(record, '$.prev', digest), 'x' FROM ledger ORDER BY seq DESC LIMIT 1",
    ],
)
def test_the_database_itself_refuses_to_change_the_ledger(
    copy: Callable[[], Path], sql: str
) -> None:
    """Also for a program that does not switch recursive triggers on."""
    path = copy()
    raw = sqlite3.connect(path, isolation_level=None)
    with pytest.raises(sqlite3.IntegrityError, match=r"append-only|follow the last"):
        raw.execute(sql)
    raw.close()
    assert verify(path).sound


def changes(payload: dict[str, Any]) -> Iterator[str]:
    """The record with each of its values changed, one at a time."""
    inner: dict[str, Any] = payload["event"]
    for key, value in payload.items():
        if key != "event":
            yield canonical({**payload, key: value + 1 if isinstance(value, int) else f"{value}0"})
    for key, value in inner.items():
        other = {**value, "more": 1} if isinstance(value, dict) else f"{value}0"
        yield canonical({**payload, "event": {**inner, key: other}})
        rest = {name: kept for name, kept in inner.items() if name != key}
        yield canonical({**payload, "event": rest})


def write(raw: sqlite3.Connection, seq: int, payload: dict[str, Any]) -> str:
    """Store a payload with the digest that belongs to it."""
    text = canonical(payload)
    digest = sha256(text.encode()).hexdigest()
    raw.execute("UPDATE ledger SET record = ?, digest = ? WHERE seq = ?", (text, digest, seq))
    return digest


def rechain(raw: sqlite3.Connection, first: int) -> None:
    """Change one record and compute every later one again, as this program would have."""
    prev = ""
    rows = raw.execute("SELECT seq, record FROM ledger WHERE seq >= ? ORDER BY seq", (first,))
    for seq, text in rows.fetchall():
        payload = json.loads(text)
        if seq == first:
            payload["event"]["data"]["forged"] = True
        else:
            payload["prev"] = prev
        prev = write(raw, seq, payload)


def restore_schema(raw: sqlite3.Connection, original: Path) -> None:
    """Put the triggers back, as a careful forger would."""
    model = sqlite3.connect(original)
    for (sql,) in model.execute("SELECT sql FROM sqlite_master WHERE type='trigger'").fetchall():
        raw.execute(sql)
    model.close()


def test_the_fixture_is_a_real_ledger(sound: tuple[Path, Anchor]) -> None:
    ledger: Ledger = open_ledger(sound[0], projectors=[Counts()])
    kinds = {record.event.kind for record in ledger.records()}
    ledger.close()
    assert kinds == {EventKind.LEDGER_OPENED, EventKind.STEP_INTENDED, EventKind.HALT_SET}
