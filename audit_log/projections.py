"""What stands beside the ledger: tables that follow from the records alone.

The Protocols that deciding functions and projectors see, and the making of their tables. Called by
`audit_log.ledger` and `audit_log.rebuild`; implemented by the engine's own projections.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Protocol

from audit_log.database import Row, complete
from audit_log.records import Event, Record


class Transaction(Protocol):
    """What a deciding function is given."""

    now: datetime

    def append(self, event: Event) -> Record:
        """Chain and insert the event and apply every projector; the record as it is stored."""
        ...

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Read, including what this transaction has written."""
        ...


class ProjectionCursor(Protocol):
    """What a projector is given: SQL on its own tables."""

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Run one statement; its rows."""
        ...


class Projector(Protocol):
    """Keeps tables that follow from the records alone, so that `rebuild` can make them again."""

    @property
    def schema(self) -> str:
        """CREATE TABLE IF NOT EXISTS ...; statements separated by `;`. Never touches `ledger`."""
        ...

    @property
    def tables(self) -> tuple[str, ...]:
        """Dropped and made again by rebuild, the last one first."""
        ...

    def apply(self, cursor: ProjectionCursor, record: Record) -> None:
        """Take one record in. Must depend on nothing but the tables and the record."""
        ...


def make_tables(cursor: ProjectionCursor, projectors: Iterable[Projector]) -> None:
    """Make what is not there yet."""
    for projector in projectors:
        for statement in statements(projector.schema):
            cursor.execute(statement)


def drop_tables(cursor: ProjectionCursor, projectors: Sequence[Projector]) -> None:
    """Drop every projection; foreign keys between them are looked at only at COMMIT."""
    cursor.execute("PRAGMA defer_foreign_keys=ON")
    for projector in reversed(projectors):
        for table in reversed(projector.tables):
            cursor.execute(f'DROP TABLE IF EXISTS "{table}"')


def statements(schema: str) -> Iterator[str]:
    """The single statements of a schema; a trigger's inner `;` does not end it."""
    held = ""
    for part in schema.split(";"):
        held += part
        if not held.strip():
            held = ""
        elif complete(held + ";"):
            yield held.strip()
            held = ""
        else:
            held += ";"


def schema_digest(projectors: Iterable[Projector]) -> str:
    """Changes when a release changes a projection, which then has to be made again."""
    text = "\0".join(projector.schema for projector in projectors)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
