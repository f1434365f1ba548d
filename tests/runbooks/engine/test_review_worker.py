"""The worker outlives any fault, never spins, and tells a person about what does not come back."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from actions.contract import Call, Observation
from config.ids import RunId
from config.steady_clock import SteadyClock
from runbooks.later import Later
from runbooks.machine import RunState
from runbooks.run import StepState
from runbooks.unfinished import Unfinished
from runbooks.worker import Worker
from tests.patience import DEADLINE, until
from tests.runbooks.engine.lamps import LIGHT, Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, {"light": LIGHT})


def worker_of(bench: Bench) -> Worker:
    return Worker(bench.parts, bench.engine, SteadyClock(bench.clock))


@pytest.fixture
def worker(bench: Bench) -> Iterator[Worker]:
    made = worker_of(bench)
    yield made
    made.stop()


def settled(worker: Worker) -> None:
    """Until nothing is carried out any more."""
    for future in tuple(worker._busy.values()):
        future.result(timeout=DEADLINE)
    while worker._busy:
        threading.Event().wait(0.001)


def test_a_worker_that_was_never_started_can_be_stopped(bench: Bench) -> None:
    worker_of(bench).stop()


def test_an_intent_of_an_action_that_this_release_lacks_stops_no_other_run(
    bench: Bench, worker: Worker
) -> None:
    old = bench.ask("light", node="l1")
    bench.world.answers = ["lost"]
    bench.engine.advance(old)
    bench.clock.forward(minutes=30)
    lacks = {name: spec for name, spec in bench.parts.specs.items() if name != "lamp.on"}
    bench.parts = replace(bench.parts, specs=lacks)
    other = worker_of(bench)
    seen = bench.ask("light", node="l2")
    other.tick()
    settled(other)
    other.stop()
    run = bench.run(old)
    assert run.state is RunState.NEEDS_PERSON
    assert run.steps["switch"].state is StepState.UNKNOWN
    assert bench.run(seen).state is not RunState.REQUESTED
    assert any("run-1" in page for page in bench.pages())


def test_a_run_that_only_news_will_move_is_not_looked_at_again_at_once(
    bench: Bench, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[RunId] = []

    def nothing(run: RunId) -> Later:
        looks.append(run)
        return Later(at=None)

    monkeypatch.setattr(bench.engine, "advance", nothing)
    run = bench.ask("light", node="l1")
    for _ in range(5):
        worker.tick()
        settled(worker)
    assert looks == [run]
    worker.changed(run)
    worker.tick()
    settled(worker)
    assert looks == [run, run]


def test_a_run_whose_fault_cannot_even_be_recorded_waits_for_the_next_tick(
    bench: Bench, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[RunId] = []

    def fault(run: RunId) -> Later:
        looks.append(run)
        raise OSError("no space left")

    monkeypatch.setattr(bench.engine, "advance", fault)
    monkeypatch.setattr(Unfinished, "give_to_person", lambda *_: fault(RunId("told")))
    run = bench.ask("light", node="l1")
    for _ in range(5):
        worker.tick()
        settled(worker)
    assert looks == [run, "told"]
    bench.clock.forward(seconds=6)
    worker.tick()
    settled(worker)
    assert looks == [run, "told"] * 2


def test_a_look_that_does_not_come_back_is_told_to_a_person_once(
    bench: Bench, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = threading.Event()
    kind = type(bench.parts.registry["lamp.on"])
    look = kind.look

    def hang(self: object, call: Call) -> Observation:
        back.wait(DEADLINE)
        return look(self, call)  # type: ignore[arg-type]

    monkeypatch.setattr(kind, "look", hang)
    bench.ask("light", node="l1")
    worker.tick()
    worker.tick()
    assert not bench.pages()
    bench.clock.forward(minutes=16)
    worker.tick()
    worker.tick()
    told = bench.pages()
    back.set()
    settled(worker)
    assert len(told) == 1
    assert "run-1" in told[0]
    assert "come back" in told[0]
    until(lambda: "it came back" in bench.pages()[0])
    assert bench.ledger.query("SELECT resolved FROM pages") == [(1,)]
