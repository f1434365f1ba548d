"""An approval covers what was shown and nothing else, however a runbook is put together."""

from dataclasses import replace
from pathlib import Path

import pytest

from actions.contract import JobLoss
from audit_log.records import EventKind
from config.actors import Door
from config.ids import JobId, RunId
from runbooks.machine import RunState
from runbooks.requests import RunRequest
from runbooks.run import Run
from tests.runbooks.engine.lamps import ANN, BOB, CLUSTER, LIGHT, Bench

CAREFUL = """\
runbook: careful
version: 1
title: Switch a lamp on if it is dark
permission: node.drain
parameters:
  node: {type: node, help: which}
steps:
  - id: see
    do: lamp.read
    with: {node: "{{ node }}"}
  - id: switch
    when: steps.see.output.owner == ""
    do: lamp.on
    with: {node: "{{ node }}"}
on_failure: escalate
"""

CALLS = """\
runbook: calls
version: 1
title: Have a lamp switched on
permission: node.drain
parameters:
  node: {type: node, help: which}
steps:
  - id: have
    call: careful
    with: {node: "{{ node }}"}
on_failure: escalate
"""

ASKS = """\
runbook: asks
version: 1
title: Ask, look again, then act
permission: node.drain
parameters:
  node: {type: node, help: which}
steps:
  - id: ok
    approve: "May I?"
  - id: again
    do: lamp.read
    with: {node: "{{ node }}"}
  - id: switch
    when: steps.again.output.owner == ""
    do: lamp.on
    with: {node: "{{ node }}"}
on_failure: escalate
"""

NOTHING_YET = """\
runbook: nothing-yet
version: 1
title: Ask before anything is known
permission: node.drain
parameters:
  node: {type: node, help: which}
steps:
  - id: ok
    approve: "May I go on?"
  - id: seen
    do: lamp.read
    with: {node: "{{ node }}"}
on_failure: escalate
"""

MANY = """\
runbook: many
version: 1
title: Ask five times
permission: node.drain
parameters:
  node: {type: node, help: which}
steps:
  - {id: one, approve: "One?"}
  - {id: two, approve: "Two?"}
  - {id: three, approve: "Three?"}
  - {id: four, approve: "Four?"}
  - id: switch
    do: lamp.on
    with: {node: "{{ node }}"}
on_failure: escalate
"""

GROWS = """\
runbook: grows
version: 1
title: Switch lamps on, then one that depends on how many there were
permission: node.drain
parameters:
  nodes: {type: nodes, help: which}
steps:
  - id: switch
    do: lamp.on
    for_each: nodes
    with: {node: "{{ item }}"}
  - id: after
    do: lamp.on
    with: {node: "{{ 'l5' if steps.switch.output | length == 1 else 'l6' }}"}
on_failure: escalate
"""

BOOKS = {
    "grows": GROWS,
    "light": LIGHT,
    "careful": CAREFUL,
    "calls": CALLS,
    "asks": ASKS,
    "nothing-yet": NOTHING_YET,
    "many": MANY,
}


def loss(number: int) -> JobLoss:
    return JobLoss(
        job=JobId(str(number)),
        slurm_id=number,
        user="dan",
        name="train",
        gpus=8,
        nodes=1,
        comes_back=True,
        lost=False,
        why="it ends",
    )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, BOOKS)


def called_by(bench: Bench, caller: RunId) -> Run:
    rows = bench.ledger.query("SELECT id FROM runs WHERE parent = ?", (caller,))
    return bench.run(RunId(rows[0][0]))


def test_a_called_runbook_that_may_end_a_job_is_asked_for_before_it_is_called(bench: Bench) -> None:
    bench.world.jobs["l1"] = (loss(7),)
    run = bench.go(bench.ask("calls", node="l1"))
    assert run.state is RunState.AWAITING_APPROVAL
    assert not bench.world.effects
    bench.requests.approve(run.id, None, BOB, Door.CLI)
    assert bench.go(run.id).state is RunState.SUCCEEDED


def test_a_step_that_may_be_skipped_is_asked_for_at_an_approve_step(bench: Bench) -> None:
    bench.world.jobs["l1"] = (loss(7),)
    run = bench.go(bench.ask("asks", node="l1"))
    assert run.state is RunState.AWAITING_APPROVAL
    assert run.plan is not None
    assert run.plan.gate == "approve"
    assert not bench.world.effects


def test_an_approve_step_always_asks_even_where_nothing_is_planned_yet(bench: Bench) -> None:
    run = bench.go(bench.ask("nothing-yet", node="l1"))
    assert run.state is RunState.AWAITING_APPROVAL


def test_asking_often_because_the_runbook_says_so_is_not_a_world_that_never_rests(
    bench: Bench,
) -> None:
    run = bench.go(bench.ask("many", node="l1"))
    for _ in range(4):
        assert run.state is RunState.AWAITING_APPROVAL, run.why
        assert run.plan is not None
        bench.requests.approve(run.id, run.plan.hash, BOB, Door.CLI)
        run = bench.go(run.id)
    assert run.state is RunState.SUCCEEDED


def test_a_called_run_whose_world_moved_is_asked_for_once_and_its_caller_waits(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, BOOKS, autonomy={"default": "propose", "rules": [
        {"runbook": "careful", "level": "act"},
    ]})  # fmt: skip
    caller = bench.go(bench.ask("calls", node="l1"))
    assert caller.state is RunState.AWAITING_APPROVAL
    bench.requests.approve(caller.id, None, BOB, Door.CLI)
    bench.world.boot["l1"] = "b2"
    caller = bench.go(caller.id)
    called = called_by(bench, caller.id)
    assert EventKind.PLAN_VOIDED in bench.kinds(called.id)
    # The called runbook alone would act: its caller's rule asks, so what changed is asked too.
    assert called.state is RunState.AWAITING_APPROVAL
    assert caller.state is RunState.WAITING
    assert not bench.world.effects
    bench.requests.approve(called.id, None, BOB, Door.CLI)
    assert bench.go(caller.id).state is RunState.SUCCEEDED
    assert bench.world.owner["l1"] == f"us:{caller.id}"


def test_a_called_run_that_nobody_approves_ends_its_caller_in_a_person_not_in_a_spin(
    bench: Bench,
) -> None:
    bench.world.jobs["l1"] = (loss(7),)
    caller = bench.go(bench.ask("calls", node="l1"))
    bench.requests.approve(caller.id, None, BOB, Door.CLI)
    bench.world.jobs["l1"] = (loss(7), loss(8))
    caller = bench.go(caller.id)
    bench.clock.forward(minutes=16)
    caller = bench.go(caller.id)
    assert called_by(bench, caller.id).state is RunState.EXPIRED
    assert caller.state is RunState.NEEDS_PERSON
    assert not bench.world.effects


def test_an_argument_that_changed_since_the_plan_is_planned_and_asked_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, BOOKS, autonomy={"default": "propose", "rules": []})
    run = bench.go(bench.ask("grows", nodes=["l1", "l2"]))
    bench.requests.approve(run.id, None, BOB, Door.CLI)
    bench.world.before_write = lambda: bench.world.boot.update(l2="b2")
    run = bench.go(run.id)
    assert run.state is RunState.AWAITING_APPROVAL, run.why
    bench.requests.approve(run.id, None, BOB, Door.CLI)  # this plan says l5
    run = bench.go(run.id)
    assert run.state is RunState.AWAITING_APPROVAL, run.why
    assert set(bench.world.owner) == {"l1", "l2"}
    bench.requests.approve(run.id, None, BOB, Door.CLI)
    run = bench.go(run.id)
    # l6 was not locked when the run began, and nobody else holds it: it is taken in mid-run.
    assert run.state is RunState.SUCCEEDED, run.why
    assert set(bench.world.owner) == {"l1", "l2", "l6"}
    assert not bench.locks()


def test_a_further_lock_that_somebody_holds_is_not_waited_for(tmp_path: Path) -> None:
    bench = Bench(tmp_path, BOOKS)
    other = bench.ask("light", node="l6")
    bench.world.answers = ["lost"]
    bench.engine.advance(other)  # its answer was lost: it keeps l6 until that is known
    run = bench.ask("grows", nodes=["l1", "l2"])
    for _ in range(5):
        bench.engine.advance(run)
    after = bench.run(run)
    assert after.state is RunState.NEEDS_PERSON
    assert "l6 is held by run-1" in after.why
    assert any("run-2" in page for page in bench.pages())


def test_the_key_of_a_request_is_its_askers_own(bench: Bench) -> None:
    """Nobody learns of, or loses a run to, somebody else who sent the same key."""
    asked = RunRequest(
        runbook="light",
        cluster=CLUSTER,
        parameters={"node": "l1"},
        actor=ANN,
        door=Door.CLI,
        reason="",
        key="cli-1",
    )
    first, fresh = bench.requests.run(asked)
    assert fresh
    assert bench.requests.run(asked) == (first, False)
    second, fresh = bench.requests.run(replace(asked, actor=BOB))
    assert fresh
    assert second != first
