import os
import sqlite3
from pathlib import Path

import pytest

from audit_log import database
from audit_log.database import interrupted_marker, refuse_network
from audit_log.errors import NewerLedger, StoreRefused
from audit_log.file_systems import is_network, mount_of
from audit_log.ledger import Ledger
from tests.audit_log.ledgers import Counts, append, event, fill, open_ledger, unlocked

MOUNTINFO = r"""22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 22 0:50 / /srv rw - nfs4 files:/srv rw
41 40 254:1 / /srv/local rw shared:3 - xfs /dev/vdb rw
42 22 0:51 / /mnt/a\040b rw - fuse.sshfs x rw
43 22 0:52 / /data rw - ext4 /dev/vdc rw
44 43 0:53 / /data rw - lustre m:/l rw
"""


def test_a_second_bot_is_refused_and_told_who_holds_the_database(
    ledger: Ledger, path: Path
) -> None:
    with pytest.raises(StoreRefused, match=f"pid {os.getpid()} on "):
        open_ledger(path)
    assert append(ledger, event()).seq == 2
    ledger.close()
    open_ledger(path).close()


def test_a_lock_file_left_by_a_dead_bot_does_not_matter(path: Path) -> None:
    Path(f"{path}.lock").write_text("pid 1 on elsewhere\n")
    open_ledger(path).close()


def test_the_settings_that_durability_needs_are_in_force(ledger: Ledger) -> None:
    def ask(name: str) -> object:
        return ledger.commit(lambda transaction: transaction.query(f"PRAGMA {name}"))[0][0]

    assert ask("journal_mode") == "wal"
    assert ask("synchronous") == 2
    assert ask("foreign_keys") == 1
    assert ask("recursive_triggers") == 1


def test_a_setting_that_does_not_take_refuses_the_start(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # SQLite answers 3 to anything above it.
    monkeypatch.setattr(database, "_WANTED", (("synchronous", 9),))
    with pytest.raises(StoreRefused, match="synchronous=1 where 9"):
        open_ledger(path)


def test_readers_cannot_write(ledger: Ledger) -> None:
    with pytest.raises(Exception, match=r"readonly|query_only"):
        ledger.query("INSERT INTO settings VALUES ('a', 'b')")
    with pytest.raises(Exception, match=r"readonly|query_only"):
        ledger.query("DROP TRIGGER ledger_is_never_updated")


@pytest.mark.parametrize(
    "path, type_name",
    [
        ("/var/lib/bot", "ext4"),
        ("/srv/bot", "nfs4"),
        ("/srv", "nfs4"),
        ("/srvother", "ext4"),
        ("/srv/local/bot", "xfs"),
        ("/mnt/a b/c", "fuse.sshfs"),
        ("/data/x", "lustre"),
    ],
)
def test_the_mount_that_holds_a_path_is_found(path: str, type_name: str) -> None:
    mount = mount_of(path, MOUNTINFO)
    assert mount is not None
    assert mount.type == type_name


def test_network_file_systems_are_told_from_local_ones() -> None:
    assert all(map(is_network, ["nfs", "nfs4", "cifs", "lustre", "ceph", "fuse.sshfs", "9p"]))
    assert not any(map(is_network, ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs"]))


def test_a_network_file_system_is_refused_by_name(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"22 1 0:1 / {tmp_path} rw - nfs4 files:/x rw\n")
    with pytest.raises(StoreRefused, match=r"nfs4.*local disk"):
        refuse_network(tmp_path / "ledger.db", mounts)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreRefused, match="nowhere is not a folder"):
        open_ledger(tmp_path / "nowhere" / "ledger.db")


def test_files_are_readable_by_the_bot_only(ledger: Ledger, path: Path) -> None:
    append(ledger, event(text="x" * 9000))
    for file in path.parent.rglob("*"):
        assert file.stat().st_mode & 0o077 == 0, file


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(StoreRefused, match="cannot be used as the ledger"):
        open_ledger(path)


def test_a_newer_schema_is_refused(path: Path) -> None:
    open_ledger(path).close()
    raw = sqlite3.connect(path)
    raw.execute(
        "INSERT INTO _sqlite_migrations (migration_set, name, applied_at)"
        " VALUES ('nodewarden', '0099_later', '')"
    )
    raw.commit()
    raw.close()
    with pytest.raises(NewerLedger, match="0099_later"):
        open_ledger(path)


@pytest.mark.parametrize("change", [('"v":1', '"v":2'), ("ledger.opened", "ledger.future")])
def test_a_record_of_a_newer_release_refuses_the_start(path: Path, change: tuple[str, str]) -> None:
    open_ledger(path).close()
    raw = unlocked(path)
    raw.execute("UPDATE ledger SET record = replace(record, ?, ?)", change)
    raw.close()
    with pytest.raises(NewerLedger, match="newer release"):
        open_ledger(path)


def test_an_interrupted_restore_refuses_the_start(path: Path) -> None:
    interrupted_marker(path).touch()
    with pytest.raises(StoreRefused, match="interrupted"):
        open_ledger(path)
    assert not path.exists()


def test_a_projection_that_a_release_adds_is_filled_at_the_start(path: Path) -> None:
    before = open_ledger(path)
    fill(before, 6)
    before.close()
    after = open_ledger(path, projectors=[Counts()])
    assert after.query("SELECT n FROM counts ORDER BY kind") == [(1,), (6,)]
    after.close()


def test_a_hostile_path_is_only_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "a?mode=memory&x=%41 #1"
    folder.mkdir()
    ledger = open_ledger(folder / "le dger.db")
    append(ledger, event())
    assert ledger.query("SELECT count(*) FROM ledger") == [(2,)]
    ledger.close()
    assert (folder / "le dger.db").stat().st_size > 0
