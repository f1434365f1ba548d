"""What a word at the desk means when the run moved on between reading and typing."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from actions.contract import JobLoss
from audit_log.gate import Gate
from bot.desk import Desk, Request
from bot.phrases import parse
from bot.replies import Reply, ReplyKind
from config.actors import Actor, Door
from config.ids import JobId
from config.permissions import Grant, Permission, Role, Target
from runbooks.cards import Cards
from runbooks.machine import RunState
from runbooks.run import Run
from tests.runbooks.engine.lamps import ANN, BOB, CLUSTER, LIGHT, Bench

ALL = Role(name="oncall", grants=(Grant(permissions=frozenset(Permission)),))


class Counter:
    """A desk over the lamps."""

    def __init__(self, folder: Path) -> None:
        self.bench = Bench(folder, {"light": LIGHT})
        gate = Gate(self.bench.ledger, self.bench.clock, lambda: {"oncall": ALL}, lambda _: None)
        inventory: Any = SimpleNamespace(target=lambda *_: Target(cluster=CLUSTER))
        answers: Any = SimpleNamespace(
            run=self._run, nodes=lambda _: (), wake=lambda: None, named=lambda reply: reply
        )
        self.desk = Desk(self.bench.parts, gate, inventory, answers, lambda _: None)

    def _run(self, text: str) -> Run:
        return self.bench.run(text)  # type: ignore[arg-type]

    def says(self, actor: Actor, text: str) -> Reply:
        return self.desk.submit(Request(actor=actor, door=Door.CLI, command=parse(text)))


@pytest.fixture
def counter(tmp_path: Path) -> Counter:
    return Counter(tmp_path)


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


def test_a_plan_that_was_made_again_is_approved_by_its_hash_only(counter: Counter) -> None:
    bench = counter.bench
    bench.world.jobs["l1"] = (loss(7),)
    run = bench.go(bench.ask("light", ANN, node="l1"))
    assert counter.says(BOB, f"approve {run.id}").kind is ReplyKind.DONE
    bench.world.jobs["l1"] = (loss(7), loss(8))
    run = bench.go(run.id)
    assert run.state is RunState.AWAITING_APPROVAL
    assert run.plan is not None
    blind = counter.says(BOB, f"approve {run.id}")
    assert blind.kind is ReplyKind.REFUSED
    assert f"--plan {run.plan.hash}" in blind.lines[0]
    assert counter.says(BOB, f"approve {run.id} --plan {run.plan.hash}").kind is ReplyKind.DONE
    assert bench.go(run.id).state is RunState.SUCCEEDED


def test_a_button_of_an_old_card_decides_no_later_question(counter: Counter) -> None:
    bench = counter.bench
    bench.world.answers = ["lost", "lost"]
    run = bench.ask("light", ANN, node="l1")
    cards = Cards(bench.parts, str)
    bench.world.before_write = lambda: bench.world.boot.update(l1=f"b{bench.seq()}")
    bench.engine.advance(run)
    bench.world.owner.clear()  # nobody can tell what became of it
    bench.clock.forward(minutes=1)
    assert bench.go(run).state is RunState.NEEDS_PERSON
    old = cards.card(run)
    assert old is not None
    done, again = (button.command for button in old.buttons[:2])
    assert counter.says(BOB, again).kind is ReplyKind.DONE
    bench.engine.advance(run)
    bench.world.owner.clear()
    bench.clock.forward(minutes=1)
    assert bench.go(run).state is RunState.NEEDS_PERSON
    late = counter.says(BOB, done)
    assert late.kind is ReplyKind.REFUSED
    assert "switch" in late.lines[0]
    new = cards.card(run)
    assert new is not None
    assert counter.says(BOB, new.buttons[0].command).kind is ReplyKind.DONE


def test_a_no_at_the_desk_says_what_becomes_of_the_run(counter: Counter) -> None:
    bench = counter.bench
    bench.world.jobs["l1"] = (loss(7),)
    run = bench.go(bench.ask("light", ANN, node="l1"))
    assert "nothing was done" in counter.says(BOB, f"deny {run.id} no").lines[0]
