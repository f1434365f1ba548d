"""One effect through the engine: what is recorded, what is done, what a crash leaves."""

from pathlib import Path

import pytest

from audit_log.records import EventKind
from runbooks.machine import RunState
from tests.runbooks.engine.lamps import LIGHT, Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, {"light": LIGHT})


def test_the_intent_is_committed_before_the_effect_and_the_outcome_after_it(bench: Bench) -> None:
    order: list[EventKind] = []
    run = bench.ask("light", node="l1")
    bench.world.before_write = lambda: order.extend(bench.kinds(run))
    assert bench.go(run).state is RunState.SUCCEEDED
    assert order[-1] is EventKind.STEP_INTENDED
    assert bench.world.effects == [f"on l1 nw-{bench.ledger.instance}-run-1-switch-1"]
    assert bench.kinds(run)[-2:] == [EventKind.STEP_FINISHED, EventKind.RUN_STATE]
    assert bench.locks() == {}
    assert bench.marks() == [("l1", "run-1")]


def test_a_lamp_that_somebody_else_lit_is_left_alone(bench: Bench) -> None:
    bench.world.owner["l1"] = "a person"
    run = bench.go(bench.ask("light", node="l1"))
    assert run.state is RunState.NEEDS_PERSON
    assert "lit by a person" in run.why
    assert bench.world.effects == []
    assert bench.marks() == []
