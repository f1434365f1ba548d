"""A stop is never lost, reaches what was called, and nothing goes forward after a turn back."""

from pathlib import Path

import pytest

from actions.contract import Action, Call, Failed, FailureKind, Outcome
from audit_log.records import EventKind
from config.actors import Door
from config.ids import RunId
from runbooks.frames import Frames
from runbooks.journal import Journal
from runbooks.machine import Move, RunState
from runbooks.requests import CannotDo
from runbooks.run import Run, StepState
from tests.runbooks.engine.lamps import ANN, BOB, LIGHT, Bench
from tests.runbooks.engine.test_review_agreement import loss

ROW = """\
runbook: row
version: 1
title: Switch a row of lamps on
permission: node.drain
parameters:
  nodes: {type: nodes, help: which}
steps:
  - id: switch
    do: lamp.on
    for_each: nodes
    with: {node: "{{ item }}"}
  - {id: ok, approve: "Another one?"}
  - id: last
    do: lamp.on
    with: {node: l8}
on_failure: undo
"""

POINT = """\
runbook: point
version: 1
title: A step that cannot be turned back from
permission: node.drain
parameters:
  node: {type: node, help: which}
steps:
  - id: first
    do: lamp.on
    with: {node: "{{ node }}"}
    point_of_no_return: true
  - id: lit
    do: lamp.lit
    with: {node: l7}
on_failure: undo
"""

WATCH = """\
runbook: watch
version: 1
title: Wait for a lamp, then switch another on
permission: node.drain
parameters:
  node: {type: node, help: which}
steps:
  - id: lit
    do: lamp.lit
    with: {node: "{{ node }}"}
  - id: person
    do: decide.person
    with: {say: "what now?"}
  - id: next
    do: lamp.on
    with: {node: l8}
on_failure: stop
"""

OUTER = """\
runbook: {name}
version: 1
title: Call another runbook
permission: node.drain
parameters:
  node: {{type: node, help: which}}
locks: ["node:l8"]
steps:
  - id: inner
    call: {called}
    with: {{node: "{{{{ node }}}}"}}
on_failure: escalate
"""

BOOKS = {
    "light": LIGHT,
    "row": ROW,
    "point": POINT,
    "watch": WATCH,
    "outer": OUTER.format(name="outer", called="watch"),
    "outmost": OUTER.format(name="outmost", called="outer"),
}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, BOOKS)


def called_by(bench: Bench, caller: RunId) -> Run:
    rows = bench.ledger.query("SELECT id FROM runs WHERE parent = ?", (caller,))
    return bench.run(RunId(rows[0][0]))


def test_a_stop_that_comes_before_the_run_began_is_carried_out(bench: Bench) -> None:
    run = bench.ask("light", node="l1")
    bench.requests.stop(run, Move.WANT_ABORT, ANN, "ann: not that one")
    assert bench.go(run).state is RunState.CANCELLED
    assert not bench.world.effects


def test_a_stop_that_comes_while_a_wait_is_recorded_is_carried_out(bench: Bench) -> None:
    run = bench.ask("light", node="l1")
    journal = Journal(bench.parts)
    journal.move(run, Move.BEGIN, "")
    bench.requests.stop(run, Move.WANT_ABORT, ANN, "ann: stop")
    journal.move(run, Move.WAIT, "l1 is held by run-7", bench.clock.now().wall)
    assert bench.go(run).state is RunState.CANCELLED
    assert not bench.world.effects


def test_a_paused_caller_holds_what_it_called_and_goes_on_where_it_was(bench: Bench) -> None:
    caller = bench.go(bench.ask("outer", node="l1"))
    assert called_by(bench, caller.id).state is RunState.WAITING
    bench.requests.stop(caller.id, Move.WANT_PAUSE, ANN, "ann: lunch")
    assert bench.go(caller.id).state is RunState.PAUSED
    bench.world.owner["l1"] = "dan"
    bench.clock.forward(seconds=30)
    bench.go(caller.id)
    assert called_by(bench, caller.id).state is RunState.WAITING  # held, not ended
    bench.requests.resume(caller.id, ANN, "ann: back", None)
    bench.go(caller.id)
    assert called_by(bench, caller.id).state is RunState.NEEDS_PERSON  # it went on to its question
    assert bench.run(caller.id).open


def test_an_abort_reaches_a_called_run_that_waits_for_a_person(bench: Bench) -> None:
    bench.world.owner["l1"] = "dan"
    caller = bench.go(bench.ask("outmost", node="l1"))
    middle = called_by(bench, caller.id)
    inner = called_by(bench, middle.id)
    assert inner.state is RunState.NEEDS_PERSON
    bench.requests.stop(caller.id, Move.WANT_ABORT, ANN, "ann: enough")
    bench.clock.forward(seconds=10)
    assert bench.go(caller.id).state is RunState.CANCELLED
    assert not bench.run(inner.id).open
    assert not bench.run(middle.id).open
    assert not bench.locks()


def test_an_abort_reaches_called_runs_at_every_depth(bench: Bench) -> None:
    caller = bench.go(bench.ask("outmost", node="l1"))
    bench.requests.stop(caller.id, Move.WANT_ABORT, ANN, "ann: enough")
    bench.clock.forward(seconds=10)
    assert bench.go(caller.id).state is RunState.CANCELLED
    assert not bench.ledger.query("SELECT 1 FROM runs WHERE open = 1")


def test_a_person_takes_over_a_caller_and_what_it_called_stands_still(bench: Bench) -> None:
    caller = bench.go(bench.ask("outer", node="l1"))
    bench.requests.stop(caller.id, Move.WANT_TAKEOVER, ANN, "ann: mine")
    assert bench.go(caller.id).state is RunState.NEEDS_PERSON
    bench.world.owner["l1"] = "dan"
    bench.clock.forward(seconds=30)
    bench.go(caller.id)
    inner = called_by(bench, caller.id)
    assert inner.steps["lit"].state is StepState.WAITING
    # Nothing is in question but whether to go on: what was called speaks for itself.
    bench.requests.resume(caller.id, ANN, "ann: go on", None)
    bench.go(caller.id)
    assert called_by(bench, caller.id).state is RunState.NEEDS_PERSON


def test_a_run_that_turned_back_never_goes_forward_again(bench: Bench) -> None:
    run = bench.go(bench.ask("row", nodes=["l1"]))
    assert run.state is RunState.AWAITING_APPROVAL
    bench.requests.stop(run.id, Move.WANT_ABORT, ANN, "ann: back")
    bench.world.owner["l1"] = "dan"  # it cannot be taken back
    run = bench.go(run.id)
    assert run.state is RunState.NEEDS_PERSON
    bench.world.owner.pop("l1")
    bench.requests.resume(run.id, ANN, "dan gave it back", False)
    run = bench.go(run.id)
    assert run.state is RunState.UNDONE
    assert [effect for effect in bench.world.effects if effect.startswith("on")] == [
        f"on l1 nw-{bench.ledger.instance}-{run.id}-switch-1"
    ]


def test_a_person_may_say_that_something_is_taken_back(bench: Bench) -> None:
    run = bench.go(bench.ask("row", nodes=["l1"]))
    bench.requests.stop(run.id, Move.WANT_ABORT, ANN, "ann: back")
    bench.world.owner["l1"] = "dan"
    run = bench.go(run.id)
    bench.requests.resume(run.id, ANN, "dan keeps it", True)
    run = bench.go(run.id)
    assert run.state is RunState.UNDONE
    assert run.steps["switch@l1"].state is StepState.UNDONE
    assert not bench.marks()
    assert bench.world.owner == {"l1": "dan"}


def test_a_paused_run_that_is_aborted_takes_back_what_it_did(bench: Bench) -> None:
    run = bench.ask("row", nodes=["l1", "l2"])

    def pause() -> None:
        bench.requests.stop(run, Move.WANT_PAUSE, ANN, "ann: wait")

    bench.world.before_write = pause
    assert bench.go(run).state is RunState.PAUSED
    bench.requests.stop(run, Move.WANT_ABORT, ANN, "ann: no")
    bench.world.before_write = None
    assert bench.go(run).state is RunState.UNDONE
    assert not bench.world.owner


def test_an_abort_past_the_point_of_no_return_takes_nothing_back(bench: Bench) -> None:
    run = bench.go(bench.ask("point", node="l1"))
    bench.requests.stop(run.id, Move.WANT_ABORT, ANN, "ann: stop")
    run = bench.go(run.id)
    assert run.state is RunState.CANCELLED
    assert "no return" in run.why
    assert bench.world.owner == {"l1": f"us:{run.id}"}


def test_a_run_that_takes_back_is_not_paused_but_can_be_taken_over(bench: Bench) -> None:
    run = bench.go(bench.ask("row", nodes=["l1"]))
    bench.requests.stop(run.id, Move.WANT_ABORT, ANN, "ann: back")
    bench.parts.halt.set("hold on")
    run = bench.go(run.id)
    assert run.state is RunState.UNDOING
    with pytest.raises(CannotDo, match="takeover"):
        bench.requests.stop(run.id, Move.WANT_PAUSE, ANN, "ann: wait")
    bench.requests.stop(run.id, Move.WANT_TAKEOVER, ANN, "ann: mine")
    assert bench.go(run.id).state is RunState.NEEDS_PERSON


def test_locks_are_kept_until_an_effect_that_may_still_happen_is_settled(bench: Bench) -> None:
    run = bench.ask("light", node="l1")
    bench.world.answers = ["lost"]
    bench.engine.advance(run)
    Journal(bench.parts).move(run, Move.ESCALATE, "a fault in the bot itself")
    bench.requests.stop(run, Move.WANT_ABORT, ANN, "ann: drop it")
    assert bench.locks()
    after = bench.go(run)
    assert after.state is RunState.CANCELLED
    assert after.steps["switch"].state is StepState.DONE  # it was looked at before the end
    assert EventKind.STEP_FINISHED in bench.kinds(run)
    assert not bench.locks()


def test_a_called_run_begins_no_effect_while_its_caller_is_asked_to_stop(bench: Bench) -> None:
    bench.world.owner["l1"] = "dan"
    caller = bench.go(bench.ask("outer", node="l1"))
    inner = called_by(bench, caller.id)
    bench.requests.resume(inner.id, BOB, "bob: go on", True)

    def pause() -> None:
        if not bench.run(caller.id).stop_wanted:
            bench.requests.stop(caller.id, Move.WANT_PAUSE, ANN, "ann: wait")

    bench.world.after_look = pause
    bench.go(caller.id)
    assert not bench.world.effects
    assert bench.run(caller.id).state is RunState.PAUSED
    bench.requests.resume(caller.id, ANN, "", None)
    bench.world.after_look = None
    assert bench.go(caller.id).state is RunState.SUCCEEDED
    assert bench.world.owner["l8"] == f"us:{caller.id}"


def test_approving_a_run_that_is_asked_to_stop_does_not_make_it_go_on(bench: Bench) -> None:
    run = bench.go(bench.ask("row", nodes=["l1"]))
    bench.requests.approve(run.id, None, BOB, Door.CLI)
    bench.requests.stop(run.id, Move.WANT_ABORT, ANN, "ann: back")
    assert bench.go(run.id).state is RunState.UNDONE
    assert "l8" not in bench.world.owner


def test_what_could_not_be_taken_back_at_once_is_tried_again_not_forgotten(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = bench.go(bench.ask("row", nodes=["l1"]))
    off = type(bench.parts.registry["lamp.off"])
    really, tries = off.do, []

    def busy_once(self: Action, call: Call) -> Outcome:
        tries.append(call.attempt)
        if len(tries) == 1:
            return Failed(error="busy", kind=FailureKind.RETRYABLE)
        return really(self, call)

    monkeypatch.setattr(off, "do", busy_once)
    bench.requests.stop(run.id, Move.WANT_ABORT, ANN, "ann: back")
    assert bench.go(run.id).state is RunState.UNDONE
    assert not bench.world.owner
    assert tries == [2, 3]


def test_a_run_that_the_ledger_refuses_every_move_is_a_fault_that_is_told(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Frames, "locks", lambda *_: frozenset())  # it believes that it holds all
    run = bench.ask("light", node="l1")
    with pytest.raises(RuntimeError, match="does not hold lab/node:l1"):
        bench.engine.advance(run)
    assert not bench.world.effects


def test_a_no_in_the_middle_of_a_run_ends_it_as_its_runbook_says(bench: Bench) -> None:
    run = bench.go(bench.ask("row", nodes=["l1"]))
    assert run.state is RunState.AWAITING_APPROVAL
    bench.requests.deny(run.id, None, BOB, "bob: not tonight")
    run = bench.go(run.id)
    assert run.state is RunState.UNDONE
    assert not bench.world.owner
    assert EventKind.APPROVAL_DENIED in bench.kinds(run.id)


def test_a_plan_in_the_middle_of_a_run_that_nobody_approves_ends_it_as_its_runbook_says(
    bench: Bench,
) -> None:
    run = bench.go(bench.ask("row", nodes=["l1"]))
    bench.clock.forward(minutes=16)
    run = bench.go(run.id)
    assert run.state is RunState.UNDONE
    assert not bench.world.owner


def test_a_no_before_anything_was_done_ends_the_run_at_once(bench: Bench) -> None:
    run = bench.go(bench.ask("row", nodes=["l1"]))
    bench.requests.stop(run.id, Move.WANT_ABORT, ANN, "")
    bench.go(run.id)
    bench.world.jobs["l2"] = (loss(7),)
    run = bench.go(bench.ask("row", nodes=["l2"]))
    assert bench.requests.deny(run.id, None, BOB, "bob: no").state is RunState.CANCELLED
