"""One effect through the engine: what is recorded, what is done, what a crash leaves."""

from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from audit_log.ledger import Transaction
from audit_log.records import Event, EventKind
from config.actors import ENGINE
from config.permissions import Permission
from runbooks.machine import RunState
from runbooks.run import StepState
from tests.runbooks.engine.lamps import LIGHT, Bench


def append(event: Event, transaction: Transaction) -> None:
    transaction.append(event)


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


def test_a_lost_answer_to_a_write_that_happened_is_found_by_looking_not_by_writing_again(
    bench: Bench,
) -> None:
    bench.world.answers = ["lost"]
    run = bench.go(bench.ask("light", node="l1"))
    assert run.state is RunState.SUCCEEDED
    assert len(bench.world.effects) == 1
    assert run.steps["switch"].output["recovered"] is True


def test_a_lost_answer_to_a_write_that_did_not_happen_is_repeated_only_after_its_limit(
    bench: Bench,
) -> None:
    bench.world.answers = ["dropped"]
    run = bench.go(bench.ask("light", node="l1"))
    assert run.steps["switch"].state is StepState.INTENDED
    bench.clock.forward(seconds=19)
    assert bench.go(run.id).steps["switch"].attempt == 1
    bench.clock.forward(seconds=2)
    after = bench.go(run.id)
    assert after.state is RunState.SUCCEEDED
    assert after.steps["switch"].attempt == 2
    assert bench.world.effects == [f"on l1 nw-{bench.ledger.instance}-run-1-switch-2"]


def test_after_a_lost_answer_a_world_that_changed_is_not_guessed_at(bench: Bench) -> None:
    bench.world.answers = ["dropped"]
    run = bench.go(bench.ask("light", node="l1"))
    bench.world.boot["l1"] = "b2"
    bench.clock.forward(seconds=30)
    after = bench.go(run.id)
    assert after.state is RunState.NEEDS_PERSON
    assert after.steps["switch"].state is StepState.UNKNOWN
    assert bench.world.effects == []
    assert bench.locks() == {"lab/node:l1": "run-1"}
    assert len(bench.pages()) == 1


def test_a_crash_between_effect_and_outcome_repeats_nothing(bench: Bench) -> None:
    class Killed(BaseException):
        pass

    def die() -> None:
        bench.world.owner["l1"] = f"us:{run}"
        bench.world.effects.append("on l1")
        raise Killed

    run = bench.ask("light", node="l1")
    bench.world.before_write = die
    with pytest.raises(Killed):
        bench.go(run)
    bench.world.before_write = None
    bench.restart()
    assert bench.go(run).state is RunState.SUCCEEDED
    assert bench.world.effects == ["on l1"]


def test_an_outcome_for_an_attempt_that_is_settled_already_is_recorded_as_late(
    bench: Bench,
) -> None:
    def settle_meanwhile() -> None:
        bench.world.before_write = None
        bench.world.owner["l1"] = f"us:{run}"
        bench.engine.advance(run)

    run = bench.ask("light", node="l1")
    bench.world.before_write = settle_meanwhile
    after = bench.go(run)
    assert after.state is RunState.SUCCEEDED
    assert EventKind.STEP_LATE in bench.kinds(run)


def test_a_retryable_failure_is_tried_again_and_a_permanent_one_is_not(bench: Bench) -> None:
    bench.world.answers = ["retry", "retry"]
    run = bench.go(bench.ask("light", node="l1"))
    for _ in range(3):
        bench.clock.forward(minutes=2)
        run = bench.go(run.id)
    assert run.state is RunState.SUCCEEDED
    assert run.steps["switch"].attempt == 3
    bench.world.answers = ["refuse"]
    other = bench.go(bench.ask("light", node="l2"))
    assert other.state is RunState.NEEDS_PERSON
    assert other.steps["switch"].attempt == 1
    assert bench.marks() == [("l1", "run-1")]


def test_a_look_without_an_answer_waits_and_acts_when_there_is_one(bench: Bench) -> None:
    bench.world.dark = True
    run = bench.go(bench.ask("light", node="l1"))
    assert run.state is RunState.WAITING
    records = bench.seq()
    bench.clock.forward(seconds=6)
    bench.go(run.id)
    assert bench.seq() == records, "an unchanged poll is not recorded"
    bench.world.dark = False
    bench.clock.forward(seconds=6)
    assert bench.go(run.id).state is RunState.SUCCEEDED


def test_a_right_that_was_taken_away_stops_the_step_that_needs_it(bench: Bench) -> None:
    bench.rights.revoked.add(Permission.NODE_DRAIN)
    run = bench.go(bench.ask("light", node="l1"))
    assert run.state is RunState.NEEDS_PERSON
    assert "was taken away" in run.why
    assert bench.world.effects == []


def test_a_halt_keeps_the_next_effect_from_beginning_and_survives_a_restart(bench: Bench) -> None:
    bench.parts.halt.set("smoke in row 4")
    run = bench.go(bench.ask("light", node="l1"))
    bench.restart()
    bench.clock.forward(minutes=5)
    assert bench.go(run.id).state is RunState.WAITING
    assert "smoke in row 4" in bench.run(run.id).why
    assert bench.world.effects == []
    bench.parts.halt.clear()
    bench.clock.forward(seconds=10)
    assert bench.go(run.id).state is RunState.SUCCEEDED


def test_a_halt_between_the_intent_and_the_effect_still_counts(bench: Bench) -> None:
    seen: list[str | None] = []

    class Button:
        """Pressed after the first look at it."""

        def reason(self) -> str | None:
            seen.append("pressed" if seen else None)
            return seen[-1]

    object.__setattr__(bench.parts, "halt", Button())
    run = bench.go(bench.ask("light", node="l1"))
    assert bench.world.effects == []
    assert run.steps["switch"].state is StepState.WAITING
    assert bench.marks() == []


def test_a_jump_of_the_clock_lets_nothing_expire(bench: Bench) -> None:
    bench.world.answers = ["dropped"]
    run = bench.go(bench.ask("light", node="l1"))
    for hours in (1, -1):
        jump = timedelta(hours=hours)
        bench.clock.jump(jump)
        data = {"by_us": jump // timedelta(microseconds=1)}
        event = Event(kind=EventKind.CLOCK_JUMPED, actor=ENGINE.id, data=data)
        bench.ledger.commit(partial(append, event))
        assert bench.go(run.id).steps["switch"].attempt == 1
    bench.clock.forward(seconds=21)
    assert bench.go(run.id).state is RunState.SUCCEEDED
