"""Every wait ends: in what was waited for, or in a person who is told; never in silence."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from actions.contract import Call, Observation, Unreadable
from audit_log.records import Event, EventKind
from config.actors import ENGINE, Door
from config.ids import RunId
from runbooks.journal import Finished, Journal
from runbooks.machine import Move, RunState
from runbooks.next_step import Place
from runbooks.run import Run, StepState
from tests.runbooks.engine.lamps import ANN, BOB, LIGHT, Bench
from tests.runbooks.engine.test_review_agreement import loss
from tests.runbooks.engine.test_steps import CALLER, ROW, WATCH

BLIND = """\
runbook: blind
version: 1
title: Act without a look before
permission: node.drain
parameters:
  node: {type: node, help: which}
steps:
  - id: switch
    do: lamp.on
    with: {node: "{{ node }}"}
on_failure: undo
"""

WATCHES = """\
runbook: watches
version: 1
title: Have a lamp watched
permission: node.drain
parameters:
  node: {type: node, help: which}
locks: ["node:l8"]
steps:
  - id: inner
    call: watch
    with: {node: "{{ node }}"}
  - id: switch
    do: lamp.on
    with: {node: l8}
on_failure: escalate
"""

BOOKS = {
    "light": LIGHT,
    "row": ROW,
    "watch": WATCH,
    "caller": CALLER,
    "blind": BLIND,
    "watches": WATCHES,
}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, BOOKS)


def test_after_a_long_stop_of_the_bot_a_wait_looks_before_it_gives_up(bench: Bench) -> None:
    run = bench.go(bench.ask("watch", node="l1"))
    bench.world.owner["l1"] = "dan"
    bench.clock.forward(minutes=30)
    bench.restart()
    assert bench.go(run.id).state is RunState.SUCCEEDED


def test_a_wait_that_was_paused_has_its_whole_time_again(bench: Bench) -> None:
    run = bench.go(bench.ask("watch", node="l1"))
    bench.requests.stop(run.id, Move.WANT_PAUSE, ANN, "ann: lunch")
    assert bench.go(run.id).state is RunState.PAUSED
    bench.clock.forward(minutes=30)
    bench.requests.resume(run.id, ANN, "ann: back", None)
    assert bench.go(run.id).state is RunState.WAITING
    bench.clock.forward(seconds=70)
    assert bench.go(run.id).state is RunState.FAILED


def test_a_step_that_gets_no_answer_for_ten_minutes_goes_to_a_person(bench: Bench) -> None:
    bench.world.dark = True
    run = bench.go(bench.ask("light", node="l1"))
    assert run.state is RunState.WAITING
    bench.clock.forward(minutes=2)
    assert bench.go(run.id).state is RunState.WAITING
    bench.clock.forward(minutes=9)
    assert bench.go(run.id).state is RunState.NEEDS_PERSON
    assert bench.pages()


def test_a_plan_that_gets_no_answer_for_ten_minutes_goes_to_a_person(bench: Bench) -> None:
    bench.world.dark = True
    run = bench.go(bench.ask("blind", node="l1"))
    assert run.state is RunState.WAITING
    bench.clock.forward(minutes=11)
    assert bench.go(run.id).state is RunState.NEEDS_PERSON
    assert bench.pages()


def test_an_act_that_gets_no_answer_for_ten_minutes_goes_to_a_person(bench: Bench) -> None:
    bench.world.jobs["l1"] = (loss(7),)
    run = bench.go(bench.ask("light", node="l1"))
    bench.requests.approve(run.id, None, BOB, Door.CLI)
    bench.parts.halt.set("firmware")
    bench.go(run.id)
    bench.clock.forward(hours=2)  # a halt may last: it is a person's own
    bench.go(run.id)
    bench.world.dark = True
    bench.parts.halt.clear()
    assert bench.go(run.id).state is RunState.WAITING
    bench.clock.forward(minutes=9)
    assert bench.go(run.id).state is RunState.WAITING
    bench.clock.forward(minutes=2)
    run = bench.go(run.id)
    assert run.state is RunState.NEEDS_PERSON
    assert "no answer" in run.why
    assert bench.pages()


def test_an_undo_that_gets_no_answer_for_ten_minutes_goes_to_a_person(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dark(self: object, call: Call) -> Observation:
        raise Unreadable("the lamp does not answer")

    monkeypatch.setattr(type(bench.parts.registry["lamp.off"]), "look", dark)
    bench.world.answers = ["", "refuse", "refuse"]
    run = bench.go(bench.ask("row", nodes=["l1", "l2", "l3"]))
    assert run.state is RunState.UNDOING
    bench.clock.forward(minutes=11)
    run = bench.go(run.id)
    assert run.state is RunState.NEEDS_PERSON
    assert run.steps["switch@l1"].state is StepState.DONE
    assert bench.pages()
    monkeypatch.undo()
    bench.requests.resume(run.id, ANN, "it answers again", False)
    assert bench.go(run.id).state is RunState.UNDONE
    assert not bench.world.owner


def test_recovery_is_told_when_this_intent_was_made_not_when_the_step_began(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = bench.ask("light", node="l1")
    bench.world.answers = ["retry", "lost"]
    bench.engine.advance(run)
    bench.clock.forward(minutes=1)
    told: list[datetime | None] = []
    kind = type(bench.parts.registry["lamp.on"])
    look = kind.look

    def listen(self: object, call: Call) -> Observation:
        told.append(call.intended_at)
        return look(self, call)  # type: ignore[arg-type]

    monkeypatch.setattr(kind, "look", listen)
    second = bench.clock.now().wall
    bench.go(run)
    assert [moment for moment in told if moment] == [second]


def called_by(bench: Bench, caller: RunId) -> Run:
    rows = bench.ledger.query("SELECT id FROM runs WHERE parent = ?", (caller,))
    return bench.run(RunId(rows[0][0]))


def test_a_resumed_caller_is_not_looked_at_without_a_pause(bench: Bench) -> None:
    caller = bench.go(bench.ask("watches", node="l1"))
    bench.requests.stop(caller.id, Move.WANT_PAUSE, ANN, "ann: wait")
    bench.go(caller.id)
    bench.requests.resume(caller.id, ANN, "", None)
    later = bench.engine.advance(caller.id)
    due = bench.run(caller.id).due_at
    assert called_by(bench, caller.id).open
    assert due is not None
    assert due <= bench.clock.now().wall
    assert later.at is not None
    assert later.at > bench.clock.now().wall


def test_an_outcome_that_comes_while_a_person_decides_does_not_make_the_run_due(
    bench: Bench,
) -> None:
    run = bench.ask("light", node="l1")
    bench.world.answers = ["lost"]
    bench.engine.advance(run)
    journal = Journal(bench.parts)
    journal.move(run, Move.ESCALATE, "a fault in the bot itself")
    record = bench.run(run).steps["switch"]
    definition = bench.parts.library.definition("light")
    place = Place(
        key="switch", step=definition.runbook.steps[1], node=record.node, arguments={"node": "l1"}
    )
    spec = bench.parts.specs["lamp.on"]
    assert journal.finish(run, place, spec, 1, Finished("done"))
    assert bench.run(run).due_at is None


def test_a_jump_forward_does_not_forget_the_actions_of_the_last_hour(tmp_path: Path) -> None:
    limits = {"ending_actions_per_hour": 1, "ending_actions_per_hour_per_pool": 1}
    bench = Bench(tmp_path, BOOKS, limits=limits)
    assert bench.go(bench.ask("light", node="l1")).state is RunState.SUCCEEDED
    bench.clock.jump(timedelta(hours=2))
    data = {"by_us": timedelta(hours=2) // timedelta(microseconds=1)}
    event = Event(kind=EventKind.CLOCK_JUMPED, actor=ENGINE.id, data=data)
    bench.ledger.commit(lambda transaction: transaction.append(event))
    assert bench.go(bench.ask("light", node="l2")).state is RunState.NEEDS_PERSON
    assert "l2" not in bench.world.owner
