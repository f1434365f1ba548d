"""Who takes a run over is not paged about it: what rings ends, and nothing new rings."""

from pathlib import Path

import pytest

from audit_log.records import EventKind
from config.ids import RunId
from runbooks.machine import Move, RunState
from runbooks.run import StepState
from runbooks.unfinished import Unfinished
from tests.runbooks.engine.lamps import ANN, BOB, LIGHT, Bench
from tests.runbooks.engine.test_review_stops import OUTER, WATCH

BOOKS = {"light": LIGHT, "watch": WATCH, "outer": OUTER.format(name="outer", called="watch")}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, BOOKS)


def told(bench: Bench, run: str) -> list[bool]:
    """Each page about this run that was to be sent: whether it said that it is over."""
    return [
        bool(record.event.data.get("resolved", False))
        for record in bench.ledger.records(run=RunId(run))
        if record.event.kind is EventKind.PAGE_INTENDED
    ]


def test_taking_over_a_run_that_acts_pages_nobody(bench: Bench) -> None:
    run = bench.go(bench.ask("watch", node="l1"))
    assert run.state is RunState.WAITING
    bench.requests.stop(run.id, Move.WANT_TAKEOVER, ANN, "ann: on the console")
    assert bench.go(run.id).state is RunState.NEEDS_PERSON
    assert told(bench, run.id) == []


def test_taking_over_a_run_that_needs_a_person_ends_its_page_and_is_recorded(bench: Bench) -> None:
    bench.world.answers = ["refuse"]
    run = bench.go(bench.ask("light", node="l1"))
    assert told(bench, run.id) == [False]
    bench.requests.stop(run.id, Move.WANT_TAKEOVER, BOB, "bob: mine")
    after = bench.run(run.id)
    assert after.state is RunState.NEEDS_PERSON
    assert (after.why, after.due_at, after.stop_wanted) == (run.why, run.due_at, "")
    assert told(bench, run.id) == [False, True]
    last = list(bench.ledger.records(run=run.id))[-1].event
    assert (last.actor, last.data["why"]) == (BOB.id, "bob: mine")
    bench.requests.stop(run.id, Move.WANT_TAKEOVER, ANN, "ann: no, mine")
    bench.requests.resume(run.id, ANN, "lit by hand", True)
    assert bench.go(run.id).state is RunState.SUCCEEDED
    assert told(bench, run.id) == [False, True], "it was over already"


def test_taking_over_a_caller_ends_the_page_of_what_it_called(bench: Bench) -> None:
    bench.world.owner["l1"] = "dan"
    caller = bench.go(bench.ask("outer", node="l1"))
    inner = RunId(bench.ledger.query("SELECT id FROM runs WHERE parent = ?", (caller.id,))[0][0])
    assert told(bench, inner) == [False]
    bench.requests.stop(caller.id, Move.WANT_TAKEOVER, ANN, "ann: mine")
    assert bench.go(caller.id).state is RunState.NEEDS_PERSON
    assert told(bench, inner) == [False, True]
    assert told(bench, caller.id) == []


def test_taking_over_a_run_that_hangs_ends_the_page_about_that(bench: Bench) -> None:
    run = bench.go(bench.ask("watch", node="l1"))
    Unfinished(bench.parts).tell_stuck(run.id)
    bench.requests.stop(run.id, Move.WANT_TAKEOVER, ANN, "ann: mine")
    bench.go(run.id)
    assert told(bench, run.id) == [False, True]


def test_new_trouble_after_a_takeover_pages_again(bench: Bench) -> None:
    bench.world.owner["l1"] = "dan"
    run = bench.go(bench.ask("watch", node="l1"))
    bench.requests.stop(run.id, Move.WANT_TAKEOVER, ANN, "ann: mine")
    bench.requests.resume(run.id, ANN, "ann: go on", True)
    bench.world.answers = ["lost"]
    bench.world.before_write = lambda: setattr(bench.world, "dark", True)
    bench.go(run.id)
    bench.clock.forward(minutes=11)
    after = bench.go(run.id)
    assert after.steps["next"].state is StepState.UNKNOWN
    assert told(bench, run.id) == [False, True, False]
