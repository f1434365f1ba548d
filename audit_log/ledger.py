"""The ledger: appends events to the hash chain and applies projections, in one transaction.

Called by the engine, the gate and the desk. A request is a function that decides inside the
transaction: it may read what is true now and then append, so it is a compare-and-set. The function
runs on the writer thread, must be quick, must touch nothing outside, and may run a second time when
the first attempt found the disk full. Nothing is ever changed or removed here.
"""

import json
import logging
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from datetime import datetime
from pathlib import Path
from typing import TypeVar
from weakref import WeakSet

from audit_log.artefacts import ArtefactStore, artefact_folder
from audit_log.ballast import Ballast
from audit_log.chain import FIRST_PREV, Head
from audit_log.database import Connection, Row, Store, open_store
from audit_log.encoding import decode, encode
from audit_log.errors import NotAReadQuery, StoreFailed
from audit_log.projections import (
    ProjectionCursor,
    Projector,
    Transaction,
    schema_digest,
)
from audit_log.records import Event, EventKind, Record
from audit_log.replay import replay
from audit_log.restoration import MAY_ACT, PENDING, RestorationProjector
from audit_log.targets import TargetsProjector
from audit_log.writer import Urgency, Writer
from config.actors import ENGINE
from config.clock import Clock
from config.ids import InstanceId, RunId
from config.json_values import JsonMap
from config.redaction import Redactor

__all__ = ["Ledger", "ProjectionCursor", "Projector", "Transaction", "Urgency"]

T = TypeVar("T")
_ALL = "SELECT seq, record, digest FROM ledger WHERE seq > ? ORDER BY seq LIMIT ?"
_OF_RUN = "SELECT seq, record, digest FROM ledger WHERE seq > ? AND run = ? ORDER BY seq LIMIT ?"
CHUNK = 500
"""Records read at a time, so that no reader keeps the log from being checkpointed."""

SCHEMA_SETTING = "projections"
RESTORED_SETTING = "restored"
"""Left in a restored file by `audit_log.backup`; turned into a record at the next start."""

log = logging.getLogger(__name__)


class _Position:
    """The head of the chain in memory; follows the database when something is rolled back."""

    def __init__(self, head: Head) -> None:
        self.head = head

    def save(self) -> Head:
        return self.head

    def restore(self, saved: Head) -> None:
        self.head = saved


class _Reader:
    """A reading connection that its thread keeps; closed with the ledger."""

    __slots__ = ("__weakref__", "connection")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection


class _Transaction:
    """Transaction on the writing connection."""

    def __init__(self, ledger: "Ledger", now: datetime) -> None:
        self.now = now
        self._ledger = ledger

    def append(self, event: Event) -> Record:
        return self._ledger._append(event, self.now)

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        rows = self._ledger._store.writer.read(sql, parameters)
        if rows is None:
            raise NotAReadQuery(f"only projectors write; this is not a query: {sql[:80]}")
        return rows


def _say_nothing(failure: StoreFailed) -> None:
    """The default of `on_store_failure`: the log line that the ledger writes is all."""


class Ledger:
    """One opened ledger. Safe to use from any thread."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        redactor: Redactor,
        projectors: Sequence[Projector],
        on_store_failure: Callable[[StoreFailed], None],
    ) -> None:
        """Use `open`."""
        self._store = store
        self._clock = clock
        self.redactor = redactor
        """Masks what comes in; the doors use it at the entrance, the ledger as the last line."""
        self.projectors: tuple[Projector, ...] = (
            RestorationProjector(),
            TargetsProjector(),
            *projectors,
        )
        self._on_store_failure = on_store_failure
        self._local = threading.local()
        self._readers: WeakSet[_Reader] = WeakSet()
        self.artefacts = ArtefactStore(artefact_folder(store.path))
        ballast = Ballast(store.path)
        if not ballast.fill():
            log.warning("too little space beside %s for its ballast file", store.path)
        self._position = _Position(_head(store.writer))
        self._writer = Writer(store.writer, self._position, ballast, self._store_failed)
        self._closed = False
        self.instance = InstanceId("")

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        clock: Clock,
        redactor: Redactor,
        projectors: Sequence[Projector],
        on_store_failure: Callable[[StoreFailed], None] = _say_nothing,
    ) -> "Ledger":
        """Open or make the ledger at `path`. Raises StoreRefused with what to change.

        `on_store_failure` is called once per trouble, on the writer thread: it must not block.
        """
        store = open_store(path)
        ledger = cls(store, clock, redactor, projectors, on_store_failure)
        try:
            ledger.commit(ledger._begin)
            ledger.instance = ledger._read_instance()
        except BaseException:
            ledger.close()
            raise
        return ledger

    def commit(self, decide: Callable[[Transaction], T], urgency: Urgency = Urgency.REST) -> T:
        """Run `decide` in a transaction; its result once that is durable. Raises what it raises,
        or StoreFailed.
        """
        return self.submit(decide, urgency).result()

    def submit(self, decide: Callable[[Transaction], T], urgency: Urgency) -> "Future[T]":
        """`commit` for callers that must not block."""
        return self._writer.submit(
            lambda: decide(_Transaction(self, self._clock.now().wall)), urgency
        )

    def amend(self, work: Callable[[ProjectionCursor], T], urgency: Urgency = Urgency.REST) -> T:
        """Change a table that stands outside the chain (people, settings); never a projection."""
        done: Future[T] = self._writer.submit(lambda: work(self._store.writer), urgency)
        return done.result()

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Read what is committed, on this thread's own read-only connection."""
        return self._reader().execute(sql, parameters)

    def records(
        self, *, after: int = 0, run: RunId | None = None, limit: int | None = None
    ) -> Iterator[Record]:
        """Records in order of `seq`, read in chunks."""
        sql, values = (_OF_RUN, (run,)) if run is not None else (_ALL, ())
        left = limit
        while left is None or left > 0:
            size = CHUNK if left is None else min(CHUNK, left)
            rows = self.query(sql, (after, *values, size))
            yield from (decode(text, digest) for _, text, digest in rows)
            if len(rows) < size:
                return
            after = rows[-1][0]
            left = None if left is None else left - len(rows)

    def restore_pending(self) -> bool:
        """Whether a restore is not lifted yet: nothing may act, save runs that were confirmed."""
        return bool(self.query(PENDING))

    def may_act(self, run: RunId) -> bool:
        """Whether no restore stands in the way of this run."""
        return bool(self.query(MAY_ACT, (run,))[0][0])

    @property
    def head(self) -> Head:
        """The last committed record."""
        return _head(self._reader())

    @property
    def problem(self) -> StoreFailed | None:
        """Why new work is refused at present; None when it is not."""
        return self._writer.problem

    @property
    def path(self) -> Path:
        """The database file."""
        return self._store.path

    def close(self) -> None:
        """Serve what is queued, then close everything. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._writer.close()
        for reader in list(self._readers):
            reader.connection.close()
        self._store.close()

    def _append(self, event: Event, now: datetime) -> Record:
        """On the writer thread: one record more."""
        head = self._position.head
        encoded = encode(event, seq=head.seq + 1, at=now, prev=head.digest, redactor=self.redactor)
        for content in encoded.spilled:
            self._keep(content)
        self._store.writer.execute(
            "INSERT INTO ledger (seq, record, digest) VALUES (?, ?, ?)",
            (head.seq + 1, encoded.text, encoded.digest),
        )
        self._position.head = Head(seq=head.seq + 1, digest=encoded.digest)
        record = decode(encoded.text, encoded.digest)
        for projector in self.projectors:
            projector.apply(self._store.writer, record)
        return record

    def _keep(self, content: bytes) -> None:
        """Store what was too long. The record goes on without it: losing that would be worse."""
        try:
            self.artefacts.put(content)
        except OSError as error:
            log.warning("an artefact of %d bytes could not be stored: %s", len(content), error)

    def _begin(self, transaction: Transaction) -> None:
        """Make the projections' tables; write the first record and what a restore left to say."""
        self._make_projections()
        if self._position.head.seq == 0:
            transaction.append(_event(EventKind.LEDGER_OPENED, {"instance": secrets.token_hex(4)}))
        for (told,) in self._store.writer.execute(
            "DELETE FROM settings WHERE name = ? RETURNING value", (RESTORED_SETTING,)
        ):
            transaction.append(_event(EventKind.RESTORED, json.loads(told)))

    def _make_projections(self) -> None:
        """Tables that are missing or that another release shaped are filled from the records."""
        writer, digest = self._store.writer, schema_digest(self.projectors)
        stored = writer.execute("SELECT value FROM settings WHERE name = ?", (SCHEMA_SETTING,))
        if stored == [(digest,)]:
            return
        replay(writer, self.projectors)
        writer.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (SCHEMA_SETTING, digest))

    def _read_instance(self) -> InstanceId:
        """The id in the first record."""
        ((text, digest),) = self.query("SELECT record, digest FROM ledger WHERE seq = 1")
        return InstanceId(str(decode(text, digest).event.data["instance"]))

    def _reader(self) -> Connection:
        """This thread's reading connection."""
        reader: _Reader | None = getattr(self._local, "reader", None)
        if reader is None:
            reader = _Reader(self._store.reader())
            self._local.reader = reader
            self._readers.add(reader)
        return reader.connection

    def _store_failed(self, failure: StoreFailed) -> None:
        """Say it to the log and to whoever pages."""
        log.error("the ledger refuses new work: %s", failure)
        try:
            self._on_store_failure(failure)
        except Exception:  # the page has its own alarms; the writer must go on serving outcomes
            log.exception("the failure of the store could not be passed on")


def _event(kind: EventKind, data: JsonMap) -> Event:
    """Something the ledger says of itself."""
    return Event(kind=kind, actor=ENGINE.id, data=data)


def _head(connection: Connection) -> Head:
    """The last record that this connection sees."""
    rows = connection.execute("SELECT seq, digest FROM ledger ORDER BY seq DESC LIMIT 1")
    return Head(seq=rows[0][0], digest=rows[0][1]) if rows else Head(seq=0, digest=FIRST_PREV)
