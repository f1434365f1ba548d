import sqlite3
import threading
from pathlib import Path

import pytest

from audit_log.anchoring import Anchoring
from audit_log.anchors import Anchor, refuse_ahead
from audit_log.backup import back_up, restore
from audit_log.database import interrupted_marker
from audit_log.errors import ChainBroken, StoreRefused
from audit_log.ledger import Ledger
from audit_log.rebuild import rebuild
from audit_log.records import EventKind
from audit_log.verify import verify
from config.ids import RunId
from tests.audit_log.ledgers import Counts, HandClock, append, event, fill, open_ledger, unlocked


def confirm(ledger: Ledger, run: str | None) -> None:
    append(ledger, event(EventKind.RESTORE_CONFIRMED, run=run, node=None))


def test_a_backup_is_a_sound_ledger_of_one_moment_with_its_artefacts(
    ledger: Ledger, path: Path, tmp_path: Path
) -> None:
    fill(ledger, 20)
    record = append(ledger, event(output="long " * 4000))
    report = back_up(path, tmp_path / "copy.db")
    append(ledger, event())
    assert report.sound
    assert report.head == verify(tmp_path / "copy.db").head
    assert report.records == 22
    ledger.close()
    copy = open_ledger(tmp_path / "copy.db", projectors=[Counts()])
    note = record.event.data["output"]
    assert isinstance(note, dict)
    assert copy.artefacts.get(str(note["artefact"])) == b"long " * 4000
    assert copy.query("SELECT sum(n) FROM counts") == [(22,)]
    copy.close()


def test_a_backup_is_one_file_that_replaces_nothing(
    ledger: Ledger, path: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    back_up(path, folder / "copy.db")
    assert [file.name for file in folder.iterdir()] == ["copy.db"]
    with pytest.raises(StoreRefused, match="exists"):
        back_up(path, folder / "copy.db")


def test_backups_taken_while_threads_commit_are_sound(
    ledger: Ledger, path: Path, tmp_path: Path
) -> None:
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            append(ledger, event())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    reports = [back_up(path, tmp_path / f"{number}.db") for number in range(5)]
    stop.set()
    for thread in threads:
        thread.join()
    assert all(report.sound for report in reports)
    for number, report in enumerate(reports):
        raw = sqlite3.connect(tmp_path / f"{number}.db")
        assert raw.execute("SELECT sum(n) FROM counts").fetchall() == [(report.records,)]
        raw.close()


def test_after_a_restore_nothing_may_act_before_a_person_confirms(
    path: Path, tmp_path: Path
) -> None:
    ledger = open_ledger(path)
    fill(ledger, 6)
    assert not ledger.restore_pending()
    back_up(path, tmp_path / "copy.db")
    fill(ledger, 4)
    ledger.close()
    done = restore(tmp_path / "copy.db", path)
    assert (done.backup_head, done.lost_to) == (7, 11)

    ledger = open_ledger(path)
    *_, told = ledger.records()
    assert told.event.kind is EventKind.RESTORED
    assert told.event.data == {"backup_head": 7, "lost_to": 11}
    assert told.seq == 8
    assert ledger.restore_pending()
    assert not ledger.may_act(RunId("run-1"))
    confirm(ledger, "run-1")
    assert ledger.may_act(RunId("run-1"))
    assert not ledger.may_act(RunId("run-2"))
    assert ledger.restore_pending()
    ledger.close()

    ledger = open_ledger(path)
    assert [record.seq for record in ledger.records()][-1] == 9, "told once, not at each start"
    assert ledger.restore_pending()
    confirm(ledger, None)
    assert not ledger.restore_pending()
    assert ledger.may_act(RunId("run-2"))
    assert rebuild(ledger).differing == ()
    ledger.close()


def test_a_second_restore_makes_earlier_confirmations_void(path: Path, tmp_path: Path) -> None:
    ledger = open_ledger(path)
    back_up(path, tmp_path / "first.db")
    ledger.close()
    restore(tmp_path / "first.db", path)
    ledger = open_ledger(path)
    confirm(ledger, "run-1")
    confirm(ledger, None)
    back_up(path, tmp_path / "second.db")
    ledger.close()
    restore(tmp_path / "second.db", path)
    ledger = open_ledger(path)
    assert not ledger.may_act(RunId("run-1"))
    ledger.close()


def test_the_former_database_is_kept_with_all_its_records(path: Path, tmp_path: Path) -> None:
    ledger = open_ledger(path)
    back_up(path, tmp_path / "copy.db")
    fill(ledger, 9)
    ledger.close()
    first = restore(tmp_path / "copy.db", path)
    second = restore(tmp_path / "copy.db", path)
    assert first.replaced == Path(f"{path}.replaced-1")
    assert second.replaced == Path(f"{path}.replaced-2")
    assert verify(first.replaced).records == 10


def test_a_log_left_by_a_killed_bot_does_not_leak_into_the_restored_file(
    path: Path, tmp_path: Path
) -> None:
    ledger = open_ledger(path)
    back_up(path, tmp_path / "copy.db")
    fill(ledger, 5)
    kept = {suffix: Path(f"{path}{suffix}").read_bytes() for suffix in ("", "-wal")}
    ledger.close()
    for suffix, content in kept.items():
        Path(f"{path}{suffix}").write_bytes(content)
    done = restore(tmp_path / "copy.db", path)
    assert done.lost_to == 6
    ledger = open_ledger(path)
    assert ledger.head.seq == 2
    ledger.close()
    assert verify(path).sound
    assert done.replaced is not None
    assert verify(done.replaced).records == 6


def test_a_running_bot_is_not_restored_over(ledger: Ledger, path: Path, tmp_path: Path) -> None:
    back_up(path, tmp_path / "copy.db")
    with pytest.raises(StoreRefused, match="in use"):
        restore(tmp_path / "copy.db", path)
    assert append(ledger, event()).seq == 2


def test_a_backup_that_was_tampered_with_is_not_restored(path: Path, tmp_path: Path) -> None:
    ledger = open_ledger(path)
    fill(ledger, 5)
    back_up(path, tmp_path / "copy.db")
    ledger.close()
    raw = unlocked(tmp_path / "copy.db")
    raw.execute("UPDATE ledger SET record = replace(record, 'p-0123456789', 'p-x') WHERE seq = 4")
    raw.close()
    with pytest.raises(ChainBroken, match="not sound"):
        restore(tmp_path / "copy.db", path)
    assert verify(path).records == 6


def test_a_lost_database_is_restored_and_the_anchors_say_what_was_lost(
    path: Path, tmp_path: Path
) -> None:
    class Sink:
        name, leaves_host = "memory", True

        def __init__(self) -> None:
            self.anchors: list[Anchor] = []

        def send(self, anchor: Anchor) -> None:
            self.anchors.append(anchor)

    clock, sink = HandClock(), Sink()
    ledger = open_ledger(path, clock)
    fill(ledger, 3)
    back_up(path, tmp_path / "copy.db")
    fill(ledger, 8)
    Anchoring(ledger, clock, [sink]).anchor_now()
    ledger.close()
    path.unlink()
    done = restore(tmp_path / "copy.db", path, sink.anchors)
    assert (done.backup_head, done.lost_to, done.replaced) == (4, 12, None)

    clock.move(60)
    ledger = open_ledger(path, clock)
    refuse_ahead(ledger, sink.anchors)
    assert ledger.restore_pending()
    clock.move(60)
    fill(ledger, 20)
    Anchoring(ledger, clock, [sink]).anchor_now()
    refuse_ahead(ledger, sink.anchors)
    report = verify(path, sink.anchors)
    assert report.sound
    assert report.restores == 1
    ledger.close()

    raw = unlocked(path)
    raw.execute("DELETE FROM ledger WHERE seq > 9")
    raw.close()
    cut = open_ledger(path, clock)
    with pytest.raises(ChainBroken):
        refuse_ahead(cut, sink.anchors)
    cut.close()


@pytest.mark.parametrize("broken_at", ["set aside", "moved"])
def test_a_restore_that_dies_half_way_never_starts_an_empty_ledger(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken_at: str
) -> None:
    ledger = open_ledger(path)
    fill(ledger, 5)
    back_up(path, tmp_path / "copy.db")
    ledger.close()

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    name = "_set_aside" if broken_at == "set aside" else "_move"
    with monkeypatch.context() as patch:
        patch.setattr(f"audit_log.backup.{name}", dies)
        with pytest.raises(KeyboardInterrupt):
            restore(tmp_path / "copy.db", path)
    assert interrupted_marker(path).exists()
    with pytest.raises(StoreRefused, match="interrupted"):
        open_ledger(path)
    restore(tmp_path / "copy.db", path)
    ledger = open_ledger(path)
    assert ledger.restore_pending()
    assert ledger.head.seq == 7
    ledger.close()
