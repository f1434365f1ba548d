"""Backup in one call while the bot runs, and restore while it does not.

A backup is one read snapshot, so writers are not kept waiting and the copy is of one moment. A
restored ledger says so in its first new record, and nothing acts on it until an admin has confirmed
the open runs: what happened after the backup is not in it, but did happen to the cluster.
"""

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from audit_log.anchors import Anchor
from audit_log.artefacts import artefact_folder, make_private, sync_folder
from audit_log.chain import Head
from audit_log.database import (
    interrupted_marker,
    open_blank,
    open_plain,
    open_reader,
    refuse_network,
    take_lock,
)
from audit_log.errors import ChainBroken, StoreError, StoreRefused
from audit_log.ledger import RESTORED_SETTING
from audit_log.verify import Report, instance_of, verify
from config.ids import InstanceId


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What a restore did."""

    backup_head: int
    lost_to: int
    """The last record known to have been given up; equal to `backup_head` when none is known."""
    replaced: Path | None
    """Where the former database was put."""


def back_up(database: Path, target: Path) -> Report:
    """Copy the ledger as it is now, and the artefacts, to `target`; verified before it counts.

    Raises StoreRefused when there is such a file already.
    """
    if target.exists():
        raise StoreRefused(f"{target} exists: name a new file, a backup replaces nothing")
    part = Path(f"{target}.part")
    part.unlink(missing_ok=True)
    _copy(database, part)
    _copy_artefacts(database, target)
    report = verify(part)
    _move(part, target)
    return report


def restore(backup: Path, database: Path, anchors: Sequence[Anchor] = ()) -> Restored:
    """Put `backup` in the place of `database`. The bot must be stopped.

    The former database is kept beside it. Raises ChainBroken for a backup that is not sound.
    """
    report = verify(backup)
    if not report.sound:
        raise ChainBroken(
            f"{backup} is not sound (record {report.findings[0].seq}:"
            f" {report.findings[0].problem}): restore an older backup"
        )
    refuse_network(database)
    lock = take_lock(database)
    try:
        return _restore(backup, database, report.head, anchors)
    finally:
        os.close(lock)


def _restore(backup: Path, database: Path, head: Head, anchors: Sequence[Anchor]) -> Restored:
    """The same, with the lock held."""
    instance = _instance(backup)
    known = [anchor.seq for anchor in anchors if anchor.instance == instance]
    lost_to = max([head.seq, _last_record(database, instance), *known])
    part, marker = Path(f"{database}.part"), interrupted_marker(database)
    part.unlink(missing_ok=True)
    _copy(backup, part)
    _mark(part, head.seq, lost_to)
    _copy_artefacts(backup, database)
    # From here to the unlink a crash leaves no database; the marker keeps a start from making one.
    marker.touch(mode=0o600)
    sync_folder(marker.parent)
    replaced = _set_aside(database)
    _move(part, database)
    marker.unlink()
    sync_folder(marker.parent)
    return Restored(backup_head=head.seq, lost_to=lost_to, replaced=replaced)


def _instance(backup: Path) -> InstanceId | None:
    """Which ledger this is a copy of."""
    connection = open_reader(backup)
    try:
        return instance_of(connection)
    finally:
        connection.close()


def _copy(source: Path, target: Path) -> None:
    """One snapshot of the database, durable."""
    reader = open_reader(source)
    try:
        writer = open_blank(target)
        try:
            reader.copy_to(writer)
            # A backup is one plain file: no second one that somebody forgets to copy.
            writer.execute("PRAGMA journal_mode=DELETE")
        finally:
            writer.close()
    finally:
        reader.close()
    with target.open("rb") as file:
        os.fsync(file.fileno())


def _copy_artefacts(source: Path, target: Path) -> None:
    """The artefacts that the other side lacks; their names are their digests, so none can differ."""
    folder = artefact_folder(source)
    for path in folder.glob("??/*"):
        copy = artefact_folder(target) / path.parent.name / path.name
        if not copy.exists():
            make_private(artefact_folder(target), copy.parent)
            part = copy.parent / f".{path.name}.part"
            shutil.copyfile(path, part)
            with part.open("rb") as file:
                os.fsync(file.fileno())
            part.rename(copy)


def _mark(part: Path, backup_head: int, lost_to: int) -> None:
    """Leave in the file what the next start has to record."""
    connection = open_plain(part)
    try:
        connection.execute(
            "INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)",
            (RESTORED_SETTING, json.dumps({"backup_head": backup_head, "lost_to": lost_to})),
        )
    finally:
        connection.close()


def _last_record(database: Path, instance: InstanceId | None) -> int:
    """How far the former database went, where it can still be read and is the same ledger."""
    try:
        connection = open_reader(database)
    except StoreError:
        return 0
    try:
        if instance_of(connection) != instance:
            return 0
        ((last,),) = connection.execute("SELECT coalesce(max(seq), 0) FROM ledger")
        return int(last)
    except StoreError:
        return 0
    finally:
        connection.close()


def _set_aside(database: Path) -> Path | None:
    """Rename the former database and what belongs to it; where to."""
    if not database.exists():
        return None
    number = 1
    while Path(f"{database}.replaced-{number}").exists():
        number += 1
    aside = Path(f"{database}.replaced-{number}")
    for suffix in ("-wal", "-shm", ""):
        part = Path(f"{database}{suffix}")
        if part.exists():
            part.rename(f"{aside}{suffix}")
    return aside


def _move(part: Path, target: Path) -> None:
    """Give a finished file its name, durably."""
    part.rename(target)
    sync_folder(target.parent)
