"""Several steps: waiting, loops, called runbooks, taking back, stopping, locks and limits."""

from pathlib import Path

import pytest

from audit_log.records import EventKind
from config.permissions import Permission
from runbooks.machine import Move, RunState
from runbooks.requests import CannotDo
from runbooks.run import StepState
from tests.runbooks.engine.lamps import ANN, CLUSTER, LIGHT, Bench

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
    stop_after: 2
    with: {node: "{{ item }}"}
on_failure: undo
"""

WATCH = """\
runbook: watch
version: 1
title: Wait for a lamp
permission: node.read
parameters:
  node: {type: node, help: which}
steps:
  - id: lit
    do: lamp.lit
    with: {node: "{{ node }}"}
    timeout: 60s
on_failure: stop
"""

CALLER = """\
runbook: caller
version: 1
title: Switch one lamp on and have another switched on
permission: node.drain
parameters:
  node: {type: node, help: first}
  other: {type: node, help: second}
steps:
  - id: first
    do: lamp.on
    with: {node: "{{ node }}"}
  - id: second
    call: light
    with: {node: "{{ other }}"}
on_failure: undo
"""

ROOMY = {"ending_actions_per_hour": 99, "ending_actions_per_hour_per_pool": 99}
TWICE = CALLER.replace("runbook: caller", "runbook: twice").replace(
    "    do: lamp.on\n    with:", "    call: light\n    with:"
)
BOOKS = {"light": LIGHT, "row": ROW, "watch": WATCH, "caller": CALLER, "twice": TWICE}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, BOOKS)


def lit(bench: Bench) -> set[str]:
    return set(bench.world.owner)


def test_every_target_of_a_loop_is_journaled_by_itself(bench: Bench) -> None:
    run = bench.go(bench.ask("row", nodes=["l1", "l2", "l3"]))
    assert run.state is RunState.SUCCEEDED
    assert set(run.steps) == {"switch@l1", "switch@l2", "switch@l3"}
    assert lit(bench) == {"l1", "l2", "l3"}


def test_a_loop_stops_after_its_number_of_failures_and_takes_back_only_what_it_did(
    bench: Bench,
) -> None:
    bench.world.owner = {"l2": "a person", "l3": "a person"}
    run = bench.go(bench.ask("row", nodes=["l1", "l2", "l3", "l4"]))
    assert run.state is RunState.UNDONE
    assert bench.world.owner == {"l2": "a person", "l3": "a person"}
    assert [effect.split()[:2] for effect in bench.world.effects] == [["on", "l1"], ["off", "l1"]]
    assert bench.marks() == []


def test_an_undo_that_finds_somebody_else_in_possession_asks_a_person(bench: Bench) -> None:
    bench.world.owner = {"l2": "a person", "l3": "a person"}
    run = bench.ask("row", nodes=["l1", "l2", "l3"])

    def taken() -> None:
        if "l1" in bench.world.owner and bench.run(run).state is RunState.RUNNING:
            bench.world.owner["l1"] = "another person"

    bench.world.after_look = taken
    after = bench.go(run)
    assert after.state is RunState.NEEDS_PERSON
    assert "cannot be taken back" in after.why
    assert bench.world.owner["l1"] == "another person"


def test_a_wait_is_a_row_and_survives_a_restart(bench: Bench) -> None:
    run = bench.go(bench.ask("watch", node="l1"))
    assert run.state is RunState.WAITING
    bench.restart()
    bench.world.owner["l1"] = "somebody"
    bench.clock.forward(seconds=11)
    assert bench.go(run.id).state is RunState.SUCCEEDED


def test_a_wait_that_is_never_fulfilled_ends_at_its_limit(bench: Bench) -> None:
    run = bench.go(bench.ask("watch", node="l1"))
    for _ in range(8):
        bench.clock.forward(seconds=10)
        run = bench.go(run.id)
    assert run.state is RunState.FAILED
    assert "not so within 60 s" in run.why


def test_a_called_runbook_has_its_own_record_and_the_callers_locks(bench: Bench) -> None:
    run = bench.ask("caller", node="l1", other="l2")
    held: list[dict[str, str]] = []
    bench.world.before_write = lambda: held.append(bench.locks())
    after = bench.go(run)
    assert after.state is RunState.SUCCEEDED
    child = bench.run(after.steps["second"].child or after.id)
    assert child.parent == run
    assert child.state is RunState.SUCCEEDED
    assert held[-1] == {"lab/node:l1": "run-1", "lab/node:l2": "run-1"}
    assert lit(bench) == {"l1", "l2"}


def test_a_runbook_that_is_called_twice_gives_each_effect_a_name_of_its_own(bench: Bench) -> None:
    run = bench.go(bench.ask("twice", node="l1", other="l2"))
    assert run.state is RunState.SUCCEEDED
    names = [effect.split()[2] for effect in bench.world.effects]
    assert len(names) == len(set(names)) == 2


def test_a_called_runbook_that_needs_a_person_keeps_its_caller_waiting(bench: Bench) -> None:
    bench.world.owner["l2"] = "a person"
    run = bench.go(bench.ask("caller", node="l1", other="l2"))
    assert run.state is RunState.WAITING
    child = bench.run(run.steps["second"].child or run.id)
    assert child.state is RunState.NEEDS_PERSON
    bench.requests.stop(child.id, Move.WANT_ABORT, ANN, "ann: leave it")
    assert bench.go(run.id).state is RunState.UNDONE
    assert lit(bench) == {"l2"}


def test_two_runs_on_one_node_take_turns(bench: Bench) -> None:
    bench.world.answers = ["dropped"]
    first = bench.go(bench.ask("light", node="l1"))
    second = bench.go(bench.ask("light", node="l1"))
    assert second.state is RunState.WAITING
    assert "held by run-1" in second.why
    bench.clock.forward(seconds=30)
    bench.go(first.id)
    bench.clock.forward(seconds=30)
    assert bench.go(second.id).state is RunState.NEEDS_PERSON, "it finds the lamp lit by run-1"
    assert len(bench.world.effects) == 1


def test_locks_are_kept_while_a_person_is_needed_and_freed_at_the_end(bench: Bench) -> None:
    bench.world.answers = ["refuse"]
    run = bench.go(bench.ask("light", node="l1"))
    assert run.state is RunState.NEEDS_PERSON
    assert bench.locks() == {"lab/node:l1": "run-1"}
    bench.requests.give_up(run.id, ANN, "ann: broken lamp")
    assert bench.locks() == {}


def test_a_person_says_that_it_is_done_and_the_run_goes_on(bench: Bench) -> None:
    bench.world.answers = ["refuse"]
    run = bench.go(bench.ask("light", node="l1"))
    with pytest.raises(CannotDo, match="say what happened"):
        bench.requests.resume(run.id, ANN, "", None)
    with pytest.raises(CannotDo, match="reason"):
        bench.requests.resume(run.id, ANN, "", True)
    bench.requests.resume(run.id, ANN, "lit it by hand", True)
    assert bench.go(run.id).state is RunState.SUCCEEDED
    assert bench.world.effects == []


def test_a_person_says_that_it_is_not_done_and_it_is_tried_again(bench: Bench) -> None:
    bench.world.answers = ["refuse"]
    run = bench.go(bench.ask("light", node="l1"))
    bench.requests.resume(run.id, ANN, "try again", False)
    assert bench.go(run.id).state is RunState.SUCCEEDED
    assert len(bench.world.effects) == 1


def test_a_pause_holds_the_run_with_its_locks_until_it_is_resumed(bench: Bench) -> None:
    run = bench.ask("row", nodes=["l1", "l2"])
    bench.world.before_write = lambda: bench.requests.stop(
        run, Move.WANT_PAUSE, ANN, "ann: one moment"
    )
    assert bench.go(run).state is RunState.PAUSED
    bench.world.before_write = None
    assert lit(bench) == {"l1"}
    assert bench.locks()["lab/node:l2"] == "run-1"
    bench.requests.resume(run, ANN, "", None)
    assert bench.go(run).state is RunState.SUCCEEDED
    assert lit(bench) == {"l1", "l2"}


def test_an_abort_of_a_runbook_that_undoes_takes_its_effects_back(bench: Bench) -> None:
    run = bench.ask("row", nodes=["l1", "l2"])
    bench.world.before_write = lambda: bench.requests.stop(run, Move.WANT_ABORT, ANN, "ann: stop")
    assert bench.go(run).state is RunState.UNDONE
    assert lit(bench) == set()


def test_a_takeover_leaves_the_marks_and_the_locks_with_the_run(bench: Bench) -> None:
    run = bench.ask("row", nodes=["l1", "l2"])
    bench.world.before_write = lambda: bench.requests.stop(
        run, Move.WANT_TAKEOVER, ANN, "ann: on the console"
    )
    assert bench.go(run).state is RunState.NEEDS_PERSON
    assert bench.marks() == [("l1", "run-1")]
    assert len(bench.locks()) == 2


def test_the_budget_of_a_pool_counts_our_own_marks_and_latches(tmp_path: Path) -> None:
    bench = Bench(tmp_path, BOOKS, limits=ROOMY)
    bench.go(bench.ask("row", nodes=["l1", "l2", "l3"]))
    bench.go(bench.ask("row", nodes=["l4", "l5"]))
    sixth = bench.go(bench.ask("light", node="l6"))
    assert "has 5 of 9 nodes out (l[1-5]) and may have 5: l6 stays in" in sixth.why
    assert lit(bench) == {"l1", "l2", "l3", "l4", "l5"}
    assert bench.ledger.query("SELECT name FROM latches") == [("nodes-out",)]
    assert any("may have 5" in page for page in bench.pages())


def test_the_hourly_limit_of_job_ending_actions_latches_until_an_admin_clears_it(
    tmp_path: Path,
) -> None:
    limits = {"ending_actions_per_hour": 2}
    bench = Bench(tmp_path, BOOKS, limits=limits)
    bench.go(bench.ask("row", nodes=["l1", "l2"]))
    third = bench.go(bench.ask("light", node="l3"))
    assert "in the last hour" in third.why
    bench.clock.forward(hours=2)
    fourth = bench.go(bench.ask("light", node="l4"))
    assert "until an admin clears it" in fourth.why
    bench.requests.clear_limit(ANN.id, "job-ending", "looked at it")
    assert bench.go(bench.ask("light", node="l5")).state is RunState.SUCCEEDED
    assert lit(bench) == {"l1", "l2", "l5"}


def test_a_node_that_is_labelled_hands_off_is_not_touched(bench: Bench) -> None:
    from config.node_names import NodeName

    bench.requests.hands_off(CLUSTER, [NodeName("l1")], ANN.id, "ann: firmware test")
    run = bench.go(bench.ask("light", node="l1"))
    assert "firmware test" in run.why
    assert lit(bench) == set()
    bench.requests.hands_off(CLUSTER, [NodeName("l1")], ANN.id, None)
    bench.requests.give_up(run.id, ANN, "ann: later")
    assert bench.go(bench.ask("light", node="l1")).state is RunState.SUCCEEDED


def test_the_same_key_is_the_same_request(bench: Bench) -> None:
    from config.actors import Door
    from runbooks.requests import RunRequest

    asked = RunRequest(
        runbook="light",
        cluster=CLUSTER,
        parameters={"node": "l1"},
        actor=ANN,
        door=Door.SLACK,
        reason="",
        key="trigger-1",
    )
    assert bench.requests.run(asked) == ("run-1", True)
    assert bench.requests.run(asked) == ("run-1", False)


def test_the_right_is_asked_again_for_each_step_and_undo_needs_none(bench: Bench) -> None:
    run = bench.ask("row", nodes=["l1", "l2", "l3"])
    bench.world.before_write = lambda: bench.rights.revoked.add(Permission.NODE_DRAIN)
    assert bench.go(run).state is RunState.UNDONE
    assert lit(bench) == set()
    assert bench.run(run).steps["switch@l1"].state is StepState.UNDONE
    assert EventKind.STEP_READ in bench.kinds(run)
