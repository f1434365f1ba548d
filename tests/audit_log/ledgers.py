"""Ledgers, clocks and projections that the tests of this folder share."""

import sqlite3
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from audit_log.errors import StoreFailed
from audit_log.ledger import Ledger, ProjectionCursor, Projector, Transaction, Urgency
from audit_log.records import Event, EventKind, Record
from config.clock import Instant
from config.ids import ActorId, ClusterName, RunId, StepId
from config.json_values import Json
from config.node_names import NodeName
from config.redaction import Redactor
from tests.patience import DEADLINE

START = datetime(2026, 3, 1, 2, 30, tzinfo=UTC)
CANARY = 'kJ9/qX+"canary\\7 ü&v'
"""A secret with every character that some encoding writes differently."""


class HandClock:
    """A clock that only the test moves."""

    def __init__(self) -> None:
        self.passed = timedelta()
        self.shift = timedelta()

    def now(self) -> Instant:
        return Instant(wall=START + self.passed + self.shift, monotonic=self.passed)

    def move(self, seconds: float) -> None:
        self.passed += timedelta(seconds=seconds)


class Counts:
    """A projection: how many records of each kind, and the last run seen."""

    schema = """
    CREATE TABLE IF NOT EXISTS counts (kind TEXT PRIMARY KEY NOT NULL, n INTEGER NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS last_runs (
      run TEXT PRIMARY KEY NOT NULL, kind TEXT NOT NULL REFERENCES counts (kind)) STRICT;
    """
    tables = ("counts", "last_runs")

    def apply(self, cursor: ProjectionCursor, record: Record) -> None:
        cursor.execute(
            "INSERT INTO counts VALUES (?, 1) ON CONFLICT (kind) DO UPDATE SET n = n + 1",
            (record.event.kind.value,),
        )
        if record.event.run:
            cursor.execute(
                "INSERT OR REPLACE INTO last_runs VALUES (?, ?)",
                (record.event.run, record.event.kind.value),
            )


def open_ledger(
    path: Path,
    clock: HandClock | None = None,
    projectors: Sequence[Projector] = (),
    on_store_failure: Callable[[StoreFailed], None] | None = None,
) -> Ledger:
    """A ledger that redacts the canary."""
    return Ledger.open(
        path,
        clock=clock or HandClock(),
        redactor=Redactor([CANARY]),
        projectors=projectors,
        on_store_failure=on_store_failure or (lambda failure: None),
    )


def event(
    kind: EventKind = EventKind.STEP_INTENDED,
    run: str | None = "run-1",
    node: str | None = "gpu-017",
    actor: str = "p-0123456789",
    **data: Json,
) -> Event:
    """An event like those of the engine."""
    return Event(
        kind=kind,
        actor=ActorId(actor),
        run=RunId(run) if run else None,
        step=StepId("drain") if run else None,
        cluster=ClusterName("c1"),
        node=NodeName(node) if node else None,
        data=data,
    )


def append(ledger: Ledger, happened: Event, urgency: Urgency = Urgency.REST) -> Record:
    """Append one event by itself."""
    return ledger.commit(lambda transaction: transaction.append(happened), urgency)


def appending(happened: Event) -> Callable[[Transaction], Record]:
    """A decision that appends this."""
    return lambda transaction: transaction.append(happened)


def fill(ledger: Ledger, count: int) -> None:
    """Append so many records that differ."""
    for number in range(count):
        append(ledger, event(run=f"run-{number % 3}", number=number))


def unlocked(path: Path) -> sqlite3.Connection:
    """What somebody does who owns the file: a raw connection, the triggers dropped."""
    raw = sqlite3.connect(path, isolation_level=None)
    for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type='trigger'").fetchall():
        raw.execute(f"DROP TRIGGER {name}")
    return raw


class Held:
    """Keeps the writer busy, so that what is submitted meanwhile becomes one batch."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._begun, self._go = threading.Event(), threading.Event()

    def __enter__(self) -> None:
        def wait(_: Transaction) -> None:
            self._begun.set()
            assert self._go.wait(DEADLINE)

        self._busy = self._ledger.submit(wait, Urgency.ACK)
        assert self._begun.wait(DEADLINE)

    def __exit__(self, *_: object) -> None:
        self._go.set()
        self._busy.result()
