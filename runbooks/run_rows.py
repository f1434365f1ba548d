"""The rows of a run: what changes at each record as columns, what seldom does as JSON, and one row
for each of its steps, so that a step of a run over a thousand nodes rewrites one small row.

`runbooks.projection` writes them, inside the transaction that appends the record; whoever needs a
run reads it here. A row names the digest of the last record that changed it. That record's chain
says everything of the run, so a run kept in memory under that digest can never be stale.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain, compress, repeat
from operator import attrgetter, is_not
from threading import Lock
from typing import Any, Protocol

from pydantic import TypeAdapter

from audit_log.ledger import ProjectionCursor
from audit_log.records import Record
from config.clock import from_microseconds, microseconds
from config.ids import RunId
from runbooks.machine import RunState
from runbooks.run import Run, StepRecord

SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, state TEXT NOT NULL, open INTEGER NOT NULL,
    cluster TEXT NOT NULL, runbook TEXT NOT NULL, requested_by TEXT NOT NULL,
    requested_us INTEGER NOT NULL, due_us INTEGER, parent TEXT, revision INTEGER NOT NULL,
    last_seq INTEGER NOT NULL, digest TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS runs_due ON runs (due_us) WHERE open = 1 AND due_us IS NOT NULL;
CREATE INDEX IF NOT EXISTS runs_open ON runs (open, number);
CREATE TABLE IF NOT EXISTS run_steps (
    place INTEGER PRIMARY KEY, run TEXT NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL);
"""
STEPS = 1 << 24
"""Places for the steps of one run: `place` is its number times this, plus the step's turn in it."""

_COLUMNS = ("state", "due_at", "revision", "last_seq")
_ELSEWHERE = {*_COLUMNS, "steps"}
_SELDOM = attrgetter(*(field.name for field in fields(Run) if field.name not in _ELSEWHERE))
_RUN = TypeAdapter(Run)
_STEP = TypeAdapter(StepRecord)

# One statement, because two would not see the same moment of a run that goes on meanwhile.
_WHOLE = """
SELECT -1 AS turn, body, state, due_us, revision, last_seq, digest FROM runs WHERE number = ?1
UNION ALL
SELECT place, body, key, NULL, NULL, NULL, NULL FROM run_steps
WHERE place BETWEEN ?1 * ?2 AND ?1 * ?2 + ?2 - 1
ORDER BY turn"""


class Known:
    """Runs in memory, by the digest that their rows name; the newest, and within bounds."""

    def __init__(self, runs: int = 512, steps: int = 300_000) -> None:
        """So many, of so many steps together: each state of a run has a table of its steps, which
        for 300,000 takes some 15 MB.
        """
        self._runs, self._steps = runs, steps
        self._held: OrderedDict[tuple[str, RunId], Run] = OrderedDict()
        self._weight = 0
        self._guard = Lock()

    def get(self, digest: str, run: RunId) -> Run | None:
        """The run as it was after the record with that digest."""
        with self._guard:
            return self._held.get((digest, run))

    def keep(self, digest: str, run: Run) -> None:
        """Remember it for whoever reads its row next."""
        with self._guard:
            before = self._held.pop((digest, run.id), None)
            self._held[digest, run.id] = run
            self._weight += len(run.steps) - (len(before.steps) if before else 0)
            while len(self._held) > self._runs or (
                self._weight > self._steps and len(self._held) > 1
            ):
                _, gone = self._held.popitem(last=False)
                self._weight -= len(gone.steps)


_known = Known()
"""Of this process: digests of different ledgers differ."""


Query = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]
"""`query` of a transaction or of the ledger, `execute` of a projector's cursor."""


class Reads(Protocol):
    """A transaction, or the ledger with what is committed."""

    @property
    def query(self) -> Query:
        """Run a query; its rows."""
        ...


def find(query: Query, run: RunId) -> Run | None:
    """A run as it is now; None for one that does not exist."""
    rows = query("SELECT number, id, digest FROM runs WHERE id = ?", (run,))
    return _run(query, *rows[0]) if rows else None


def load(reads: Reads, run: RunId) -> Run:
    """A run that has to exist. Raises KeyError when it does not."""
    found = find(reads.query, run)
    if found is None:
        raise KeyError(run)
    return found


def select(query: Query, condition: str, parameters: Sequence[object] = ()) -> list[Run]:
    """Runs that fulfil an SQL condition of ours, oldest first, each as it is when it is read."""
    sql = f"SELECT number, id, digest FROM runs WHERE {condition} ORDER BY number"  # noqa: S608
    return [_run(query, *row) for row in query(sql, parameters)]


def as_text(run: Run) -> str:
    """A run as JSON, for programs."""
    return _RUN.dump_json(run).decode()


def insert(cursor: ProjectionCursor, run: Run, record: Record) -> None:
    """The rows of a run that begins with this record."""
    cursor.execute(
        "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            _number(run.id),
            run.id,
            run.state.value,
            int(run.open),
            run.cluster,
            run.runbook,
            run.requested_by,
            microseconds(run.requested_at),
            microseconds(run.due_at) if run.due_at else None,
            run.parent,
            run.revision,
            run.last_seq,
            record.digest,
            _body(run),
        ),
    )
    _known.keep(record.digest, run)


def update(cursor: ProjectionCursor, before: Run, run: Run, record: Record) -> None:
    """Bring the rows from one to the other, writing only what differs: each page that is touched
    costs a part of the commit.
    """
    number = _number(run.id)
    values = (
        run.state.value,
        microseconds(run.due_at) if run.due_at else None,
        run.revision,
        run.last_seq,
        record.digest,
    )
    cursor.execute(
        "UPDATE runs SET state = ?, due_us = ?, revision = ?, last_seq = ?, digest = ? "
        "WHERE number = ?",
        (*values, number),
    )
    if _SELDOM(run) != _SELDOM(before):
        cursor.execute("UPDATE runs SET body = ? WHERE number = ?", (_body(run), number))
    if run.open != before.open:
        cursor.execute("UPDATE runs SET open = ? WHERE number = ?", (int(run.open), number))
    for turn, (key, step) in _changed(before.steps, run.steps):
        cursor.execute(
            "INSERT INTO run_steps VALUES (?, ?, ?, ?) "
            "ON CONFLICT (place) DO UPDATE SET key = excluded.key, body = excluded.body",
            (number * STEPS + turn, run.id, key, _STEP.dump_json(step).decode()),
        )
    _known.keep(record.digest, run)


def _changed(
    before: Mapping[str, StepRecord], after: Mapping[str, StepRecord]
) -> Iterator[tuple[int, tuple[str, StepRecord]]]:
    """Steps that are new, replaced or moved on by one that was taken over, with their turn: a fold
    never takes one away.
    """
    if after is before:
        return iter(())
    old = chain(before.values(), repeat(None))
    return compress(enumerate(after.items()), map(is_not, after.values(), old))


def _number(run: RunId) -> int:
    return int(run.removeprefix("run-"))


def _body(run: Run) -> str:
    return _RUN.dump_json(run, exclude=_ELSEWHERE).decode()


def _run(query: Query, number: int, run: str, digest: str) -> Run:
    """The run of a row, out of memory where it is known."""
    known = _known.get(digest, RunId(run))
    return known if known is not None else _read(query, number)


def _read(query: Query, number: int) -> Run:
    (_, body, state, due, revision, seq, digest), *steps = query(_WHOLE, (number, STEPS))
    run = replace(
        _RUN.validate_json(body),
        state=RunState(state),
        due_at=None if due is None else from_microseconds(due),
        revision=revision,
        last_seq=seq,
        steps={key: _STEP.validate_json(text) for _, text, key, *_ in steps},
    )
    _known.keep(digest, run)
    return run
