"""A run is kept in rows: one for the run, one for each of its steps."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from audit_log.ledger import Transaction
from audit_log.records import EventKind, Record
from config.ids import RunId, StepId
from runbooks import run_rows
from runbooks.machine import Move
from runbooks.run import Run, StepRecord, StepState
from runbooks.run_events import run_event
from runbooks.run_rows import find, load, select
from tests.runbooks.engine.lamps import LIGHT, Bench


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path, {"light": LIGHT})
    yield made
    made.ledger.close()


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has just begun."""
    monkeypatch.setattr(run_rows, "_known", run_rows.Known())


def test_rows_say_what_the_fold_made(world: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for lamp in ("l1", "l2", "l3"):
        world.go(world.ask("light", node=lamp))
    kept = select(world.ledger.query, "true")
    assert [len(run.steps) for run in kept] == [2, 2, 2]
    forget(monkeypatch)
    assert select(world.ledger.query, "true") == kept
    assert [list(run.steps) for run in select(world.ledger.query, "true")] == [
        list(run.steps) for run in kept
    ]


def test_a_run_counts_its_records(world: Bench) -> None:
    run = world.go(world.ask("light", node="l1"))
    records = list(world.ledger.records(run=run.id))
    assert (run.revision, run.last_seq) == (len(records), records[-1].seq)


def test_a_run_that_goes_on_while_it_is_read_is_seen_at_one_moment(
    world: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = world.ask("light", node="l1")
    went_on: list[RunId] = []

    def query(sql: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        rows = world.ledger.query(sql, parameters)
        if not went_on:
            went_on.append(run)
            world.go(run)
            forget(monkeypatch)
        return rows

    forget(monkeypatch)
    seen = find(query, run)
    assert went_on
    assert seen == load(world.ledger, run)
    assert seen is not None
    assert len(seen.steps) == 2


def test_what_was_rolled_back_is_not_remembered(world: Bench) -> None:
    run = world.ask("light", node="l1")
    before = load(world.ledger, run)

    def fail(transaction: Transaction) -> None:
        transaction.append(run_event(EventKind.RUN_STATE, before, {"move": Move.BEGIN.value}))
        assert load(transaction, run).revision == before.revision + 1
        raise LookupError

    with pytest.raises(LookupError):
        world.ledger.commit(fail)
    assert load(world.ledger, run) == before
    world.go(run)
    assert load(world.ledger, run).revision > before.revision + 1


class Noted:
    """A cursor that keeps what is written."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        self.written.append(f"{' '.join(sql.split()[:4])} {parameters[0] if parameters else ''}")
        return []


def test_a_step_of_a_long_run_rewrites_its_own_row_only(world: Bench) -> None:
    run = load(world.ledger, world.ask("light", node="l1"))
    record = next(world.ledger.records(run=run.id))
    steps = {f"s@{name}": StepRecord(step=StepId("s"), state=StepState.DONE) for name in range(999)}
    before = replace(run, steps=steps)
    one = replace(steps["s@7"], state=StepState.FAILED)
    new = StepRecord(step=StepId("t"), state=StepState.INTENDED)
    assert _writes(before, {**steps, "s@7": one}, record) == [_place(run, 7)]
    assert _writes(before, {**steps, "t": new}, record) == [_place(run, 999)]
    assert _writes(before, steps, record) == []


def _writes(before: Run, steps: dict[str, StepRecord], record: Record) -> list[str]:
    """Rows written beside the short one that every record changes."""
    cursor = Noted()
    run_rows.update(cursor, before, replace(before, steps=steps, revision=9), record)
    assert cursor.written[0].startswith("UPDATE runs SET state")
    return cursor.written[1:]


def _place(run: Run, turn: int) -> str:
    number = int(run.id.removeprefix("run-"))
    return f"INSERT INTO run_steps VALUES {number * run_rows.STEPS + turn}"


def test_what_is_remembered_of_runs_has_bounds(world: Bench) -> None:
    run = load(world.ledger, world.ask("light", node="l1"))
    one = StepRecord(step=StepId("s"), state=StepState.DONE)
    long = replace(run, steps={f"s@{turn}": one for turn in range(60)})
    known = run_rows.Known(runs=3, steps=100)
    for digest in ("a", "b", "c", "d"):
        known.keep(digest, run)
    assert [known.get(digest, run.id) for digest in "abcd"] == [None, run, run, run]
    known.keep("e", long)
    known.keep("e", long)
    assert known.get("e", run.id) == long
    assert known.get("d", run.id) == run
    known.keep("f", long)
    assert known.get("e", run.id) is None
    assert known.get("f", run.id) == long
