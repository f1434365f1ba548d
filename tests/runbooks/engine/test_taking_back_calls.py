"""Undo reaches the runs that a run called: last first, only what is still ours, never a guess."""

from pathlib import Path

import pytest

from actions.contract import Action, Call, Failed, FailureKind, Outcome
from audit_log.rebuild import rebuild
from audit_log.records import EventKind
from bot.slack.stories import _details
from config.ids import RunId
from runbooks import run_rows
from runbooks.machine import Move, RunState
from runbooks.run import Run, StepState
from tests.runbooks.engine.lamps import ANN, LIGHT, Bench

PAIR = """\
runbook: pair
version: 1
title: Switch two lamps on
permission: node.drain
parameters:
  node: {type: node, help: which}
steps:
  - id: one
    do: lamp.on
    with: {node: "{{ node }}"}
  - id: two
    do: lamp.on
    with: {node: l2}
on_failure: stop
"""

INNER = """\
runbook: inner
version: 1
title: Switch one on and call another
permission: node.drain
parameters:
  node: {type: node, help: which}
steps:
  - id: own
    do: lamp.on
    with: {node: l4}
  - id: deeper
    call: pair
    with: {node: "{{ node }}"}
on_failure: stop
"""

CALLER = """\
runbook: {name}
version: 1
title: Switch lamps on around a call
permission: node.drain
parameters:
  node: {{type: node, help: which}}
locks: ["node:l1", "node:l2", "node:l3", "node:l4", "node:l7"]
steps:
  - id: before
    do: lamp.on
    with: {{node: l3}}
  - id: inner
    call: {called}
    with: {{node: "{{{{ node }}}}"}}
  - {{id: ok, approve: "Go on?"}}
  - id: after
    do: lamp.on
    with: {{node: l7}}
on_failure: undo
"""

POINT = LIGHT.replace("runbook: light", "runbook: point").replace(
    "do: lamp.on", "do: lamp.on\n    point_of_no_return: true"
)

THEN = CALLER.format(name="then", called="pair").replace('  - {id: ok, approve: "Go on?"}\n', "")

BOOKS = {
    "light": LIGHT,
    "pair": PAIR,
    "inner": INNER,
    "point": POINT,
    "caller": CALLER.format(name="caller", called="pair"),
    "outer": CALLER.format(name="outer", called="inner"),
    "then": THEN,
    "final": CALLER.format(name="final", called="point"),
}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, BOOKS)


def called_by(bench: Bench, caller: RunId) -> Run:
    rows = bench.ledger.query("SELECT id FROM runs WHERE parent = ?", (caller,))
    return bench.run(RunId(rows[0][0]))


def lamps(bench: Bench) -> list[str]:
    """Effects in order, as `on l1`."""
    return [" ".join(effect.split()[:2]) for effect in bench.world.effects]


def aborted(bench: Bench, runbook: str) -> Run:
    """A run that was stopped after what it called had succeeded."""
    run = bench.go(bench.ask(runbook, node="l1"))
    assert run.state is RunState.AWAITING_APPROVAL
    bench.requests.stop(run.id, Move.WANT_ABORT, ANN, "ann: back")
    return run


def test_undo_takes_back_what_the_called_run_did_last_first(bench: Bench) -> None:
    run = bench.go(aborted(bench, "caller").id)
    assert run.state is RunState.UNDONE
    assert not bench.world.owner
    assert not bench.marks()
    assert lamps(bench) == ["on l3", "on l1", "on l2", "off l2", "off l1", "off l3"]


def test_undo_reaches_called_runs_at_every_depth(bench: Bench) -> None:
    run = bench.go(aborted(bench, "outer").id)
    assert run.state is RunState.UNDONE
    assert lamps(bench)[4:] == ["off l2", "off l1", "off l4", "off l3"]
    assert run.steps["inner/deeper/two"].state is StepState.UNDONE


def test_what_the_called_run_did_is_taken_back_when_the_call_failed(bench: Bench) -> None:
    bench.world.owner["l2"] = "dan"  # the second step of the called run finds a foreign lamp
    run = bench.go(bench.ask("caller", node="l1"))
    assert called_by(bench, run.id).state is RunState.FAILED
    assert run.state is RunState.UNDONE
    assert bench.world.owner == {"l2": "dan"}
    assert lamps(bench) == ["on l3", "on l1", "off l1", "off l3"]


def test_what_another_took_over_meanwhile_is_not_touched_and_a_person_is_asked(
    bench: Bench,
) -> None:
    run = aborted(bench, "caller")
    bench.world.owner["l1"] = "dan"  # he took it over meanwhile
    run = bench.go(run.id)
    assert run.state is RunState.NEEDS_PERSON
    assert "inner/one cannot be taken back" in run.why
    assert bench.world.owner["l1"] == "dan"
    bench.requests.resume(run.id, ANN, "dan keeps it", True, "inner/one:1")
    run = bench.go(run.id)
    assert run.state is RunState.UNDONE
    assert bench.world.owner == {"l1": "dan"}
    assert not bench.marks()


def test_a_restart_anywhere_in_the_undo_repeats_no_effect(bench: Bench) -> None:
    run = aborted(bench, "outer").id
    for _ in range(40):
        if bench.run(run).state.final:
            break
        bench.restart()
        frame = bench.engine._frames.frame(run)
        assert frame is not None
        bench.engine._one(frame)
    assert bench.run(run).state is RunState.UNDONE
    assert lamps(bench)[4:] == ["off l2", "off l1", "off l4", "off l3"]


def test_a_lost_answer_while_a_called_step_is_taken_back_is_looked_at(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = aborted(bench, "caller").id
    off = type(bench.parts.registry["lamp.off"])
    really, tries = off.do, []

    def busy_once(self: Action, call: Call) -> Outcome:
        tries.append(str(call.node))
        if len(tries) == 1:
            return Failed(error="busy", kind=FailureKind.RETRYABLE)
        return really(self, call)

    monkeypatch.setattr(off, "do", busy_once)
    bench.go(run)
    bench.clock.forward(minutes=1)
    assert bench.go(run).state is RunState.UNDONE
    assert tries == ["l2", "l2", "l1", "l3"]


def test_a_point_of_no_return_in_a_called_run_ends_the_undo_of_its_caller(bench: Bench) -> None:
    run = bench.go(aborted(bench, "final").id)
    assert run.state is RunState.CANCELLED
    assert "no return" in run.why
    assert not [effect for effect in lamps(bench) if effect.startswith("off")]


def test_an_unknown_step_of_a_called_run_is_asked_about_and_not_passed_over(bench: Bench) -> None:
    run = bench.ask("caller", node="l1")
    bench.world.answers = ["", "", "lost"]

    def dark_from_the_last_on() -> None:
        bench.world.dark = bench.world.answers == ["lost"]

    bench.world.before_write = dark_from_the_last_on
    bench.go(run)
    assert bench.world.dark
    bench.clock.forward(minutes=11)
    bench.go(run)
    called = called_by(bench, run)
    assert called.steps["two"].state is StepState.UNKNOWN
    bench.requests.give_up(called.id, ANN, "ann: leave it")
    bench.world.dark = False
    after = bench.go(run)
    assert after.state is RunState.NEEDS_PERSON
    assert "inner/two" in after.why
    assert "l2" in bench.world.owner
    bench.requests.resume(run, ANN, "it is lit", True)
    assert bench.go(run).state is RunState.UNDONE
    assert not bench.world.owner


def test_the_thread_of_a_card_tells_each_step_once_when_it_is_taken_over(bench: Bench) -> None:
    run = aborted(bench, "caller").id
    while "inner/one" not in bench.run(run).steps:
        frame = bench.engine._frames.frame(run)
        assert frame is not None
        bench.engine._one(frame)
    lines = [line for _, line in _details([bench.run(run), called_by(bench, run)])]
    assert len([line for line in lines if "one done" in line]) == 1


def test_what_was_taken_over_is_folded_again_from_the_ledger(bench: Bench) -> None:
    run = bench.go(aborted(bench, "outer").id)
    assert EventKind.STEP_TAKEN_OVER in bench.kinds(run.id)
    assert rebuild(bench.ledger).differing == ()
    assert bench.run(run.id) == run


def test_what_was_taken_over_stands_in_the_rows_in_its_turn(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.world.owner["l7"] = "dan"
    run = bench.go(bench.ask("then", node="l1"))
    assert list(run.steps)[-1] == "after"  # it failed, and stands behind what was taken over
    assert EventKind.STEP_TAKEN_OVER in bench.kinds(run.id)
    monkeypatch.setattr(run_rows, "_known", run_rows.Known())
    read = bench.run(run.id)
    assert list(read.steps.items()) == list(run.steps.items())
