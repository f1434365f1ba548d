"""The one SQLite file: opens, checks, locks and migrates it. The only importer of sqlite3.

Called by `audit_log.ledger` and by the offline commands (verify, backup, restore). It hands out
`Connection`s; nothing outside this module sees a sqlite3 object. It must never alter the table
`ledger` after its first migration: a new meaning is a new record version.
"""

import fcntl
import os
import socket
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlite_utils import Database
from sqlite_utils.migrations import Migrations

from audit_log.errors import (
    NewerLedger,
    StatementRefused,
    StoreBusy,
    StoreError,
    StoreFailed,
    StoreFull,
    StoreRefused,
)
from audit_log.file_systems import is_network, mount_of

Row = tuple[Any, ...]

MOUNTS = Path("/proc/self/mountinfo")
_WANTED = (
    ("journal_mode", "wal"),
    ("synchronous", 2),
    ("foreign_keys", 1),
    ("recursive_triggers", 1),
)
_FULL = frozenset({"SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE"})
"""How SQLite says "no space": ENOSPC, then a quota or file size limit, then the shared memory."""

_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_NOMEM", "SQLITE_INTERRUPT")
_BROKEN = ("SQLITE_IOERR", "SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_READONLY", "SQLITE_CANTOPEN")

migrations = Migrations("nodewarden")


@migrations(name="0001_ledger")
def _ledger(database: Database) -> None:
    """The ledger, its triggers, and the tables that are not projections."""
    for statement in ledger_schema():
        database.conn.execute(statement)


def ledger_schema() -> tuple[str, ...]:
    """The statements of the first migration, one by one."""
    text = files("audit_log").joinpath("schema/0001_ledger.sql").read_text("utf-8")
    return tuple(part.strip() for part in text.split("\n\n") if part.strip())


class Connection:
    """One connection. Errors come out as StoreFull or StoreFailed."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        """Made by this module only."""
        self._raw = raw

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Run one statement and fetch all of its rows."""
        try:
            return self._raw.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise translated(error) from error

    def read(self, sql: str, parameters: Sequence[object] = ()) -> list[Row] | None:
        """Run one statement; None when it was not one that only reads."""
        before = self._raw.total_changes
        try:
            cursor = self._raw.execute(sql, parameters)
            rows: list[Row] = cursor.fetchall()
        except sqlite3.Error as error:
            raise translated(error) from error
        reads = cursor.description is not None and self._raw.total_changes == before
        return rows if reads else None

    def chunks(self, sql: str, parameters: Sequence[object], size: int) -> Iterator[list[Row]]:
        """The rows of a long read, `size` at a time."""
        try:
            cursor = self._raw.execute(sql, parameters)
            while rows := cursor.fetchmany(size):
                yield rows
        except sqlite3.Error as error:
            raise translated(error) from error

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open; a failed statement may have ended it."""
        return self._raw.in_transaction

    def copy_to(self, target: "Connection") -> None:
        """SQLite's online backup in one read snapshot.

        In steps it would begin again with every commit of the bot; in WAL mode a reader keeps no
        writer waiting.
        """
        try:
            self._raw.backup(target._raw)
        except sqlite3.Error as error:
            raise translated(error) from error

    def close(self) -> None:
        """Close it."""
        self._raw.close()


def translated(error: sqlite3.Error) -> StoreError:
    """Our error for one of SQLite's."""
    name = getattr(error, "sqlite_errorname", "") or type(error).__name__
    if name in _FULL:
        return StoreFull(
            f"no space left for the ledger ({name}): free at least 32 MiB on its disk; until then"
            " only outcomes and releases are stored"
        )
    if name.startswith(_BUSY):
        return StoreBusy(f"another program holds the ledger ({name}): see `fuser` on its file")
    if not name.startswith(_BROKEN):
        return StatementRefused(f"SQLite refuses this statement: {error} ({name})")
    return StoreFailed(f"the ledger could not do this ({name}: {error}); see the host's disk log")


@dataclass(slots=True)
class Store:
    """The opened database: its lock, its writing connection, and a way to read."""

    path: Path
    writer: Connection
    _lock: int

    def reader(self) -> Connection:
        """A connection that cannot write."""
        return open_reader(self.path)

    def close(self) -> None:
        """Close the writing connection, then give up the lock: in this order, or two could write."""
        self.writer.close()
        os.close(self._lock)


def open_store(path: Path) -> Store:
    """Open (or make) the database for writing. Raises StoreRefused with what to change."""
    path = path.absolute()
    refuse_network(path)
    lock = take_lock(path)
    try:
        if interrupted_marker(path).exists():
            raise StoreRefused(
                f"a restore of {path} was interrupted: run `nodewarden audit restore` again; the"
                f" former database, if any, is {path}.replaced-1 or a higher number"
            )
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        return Store(path=path, writer=Connection(_open_writer(path)), _lock=lock)
    except BaseException:
        os.close(lock)
        raise


def open_reader(path: Path, *, raw_text: bool = False) -> Connection:
    """A connection in mode=ro. Raises StoreRefused when there is no such file.

    With `raw_text`, text comes as the stored bytes: for digests, and because it cannot fail.
    """
    try:
        raw = _connect(path, "ro")
    except sqlite3.Error as error:
        raise StoreRefused(f"{path} cannot be opened: {error}") from error
    if raw_text:
        raw.text_factory = bytes
    raw.execute("PRAGMA query_only=ON")
    raw.execute("PRAGMA busy_timeout=10000")
    return Connection(raw)


def open_blank(path: Path) -> Connection:
    """A new file to copy a backup into."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    return open_plain(path)


def open_plain(path: Path) -> Connection:
    """A writing connection to a file that is no running ledger: a copy that is being prepared."""
    return Connection(_connect(path, "rw"))


def interrupted_marker(path: Path) -> Path:
    """The file that says a restore is replacing this database."""
    return Path(f"{path}.restoring")


def complete(statement: str) -> bool:
    """Whether this text ends a statement (a trigger's inner `;` does not)."""
    return sqlite3.complete_statement(statement)


def refuse_network(path: Path, mounts: Path = MOUNTS) -> None:
    """Raise StoreRefused when `path` lies on a network file system."""
    folder = path.parent.resolve()
    if not folder.is_dir():
        raise StoreRefused(f"{folder} is not a folder: make it, owned by the bot, mode 0700")
    mount = mount_of(str(folder), mounts.read_text("utf-8", "backslashreplace"))
    if mount and is_network(mount.type):
        raise StoreRefused(
            f"{path} lies on {mount.point} ({mount.type}), a network file system, where locks and"
            " syncs cannot be relied on: put the database on a local disk"
        )


def take_lock(path: Path) -> int:
    """The descriptor that holds the single-instance lock of this database."""
    name = Path(f"{path}.lock")
    lock = os.open(name, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.read(lock, 200).decode("utf-8", "backslashreplace").strip() or "unknown"
        os.close(lock)
        raise StoreRefused(
            f"{path} is in use by another nodewarden ({holder}): stop that one first, or use the"
            " commands that talk to it"
        ) from error
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"pid {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
    return lock


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    """A raw connection in autocommit mode: every BEGIN in this package is written out."""
    return sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=512,
    )


def _open_writer(path: Path) -> sqlite3.Connection:
    """The writing connection, with its settings read back and the schema up to date."""
    raw = _connect(path, "rw")
    try:
        database = Database(raw, execute_plugins=False)
        for pragma, value in _WANTED:
            raw.execute(f"PRAGMA {pragma}={value}")
        raw.execute("PRAGMA busy_timeout=10000")
        _read_back(raw)
        _migrate(database)
    except sqlite3.DatabaseError as error:
        raw.close()
        raise StoreRefused(f"{path} cannot be used as the ledger: {error}") from error
    except BaseException:
        raw.close()
        raise
    return raw


def _read_back(raw: sqlite3.Connection) -> None:
    """Refuse a connection on which a setting did not take."""
    for pragma, value in _WANTED:
        (got,) = raw.execute(f"PRAGMA {pragma}").fetchone()
        if got != value:
            raise StoreRefused(
                f"SQLite answers {pragma}={got} where {value} is needed: durability cannot be"
                " promised here; use a local disk and an unmodified SQLite"
            )


def _migrate(database: Database) -> None:
    """Apply what is missing; refuse what a newer release has applied."""
    known = {migration.name for migration in migrations.pending(database)}
    applied = {migration.name for migration in migrations.applied(database)}
    unknown = applied - known - {"0001_ledger"}
    if unknown:
        raise NewerLedger(
            f"the database has {', '.join(sorted(unknown))}, which this release does not know:"
            " start the newer release, or restore a backup of this one"
        )
    migrations.apply(database)
