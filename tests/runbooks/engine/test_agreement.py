"""Plans, approvals and what voids them: approval means this plan."""

from dataclasses import replace
from pathlib import Path

import pytest

from actions.contract import JobLoss
from config.actors import Actor, ActorKind, Door
from config.ids import ActorId, JobId
from runbooks.machine import Move, RunState
from runbooks.requests import CannotDo
from tests.runbooks.engine.lamps import ANN, BOB, CAT, LIGHT, Bench


def loss(number: int, *, lost: bool = False, gpus: int = 8) -> JobLoss:
    return JobLoss(
        job=JobId(str(number)),
        slurm_id=number,
        user="ann",
        name="train",
        gpus=gpus,
        nodes=1,
        comes_back=not lost,
        lost=lost,
        why="it ends",
    )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path, {"light": LIGHT})
    bench.world.jobs["l1"] = (loss(7),)
    return bench


def test_a_plan_that_ends_a_job_waits_for_another_person(bench: Bench) -> None:
    run = bench.go(bench.ask("light", node="l1"))
    assert run.state is RunState.AWAITING_APPROVAL
    assert bench.world.effects == []
    assert bench.locks() == {}, "locks are taken when the run starts to act"
    with pytest.raises(CannotDo, match="somebody else must approve"):
        bench.requests.approve(run.id, None, ANN, Door.SLACK)
    bench.requests.approve(run.id, None, BOB, Door.CLI)
    assert bench.go(run.id).state is RunState.SUCCEEDED


def test_lost_work_needs_two_different_persons(bench: Bench) -> None:
    bench.world.jobs["l1"] = (loss(7, lost=True),)
    run = bench.go(bench.ask("light", node="l1"))
    bench.requests.approve(run.id, None, BOB, Door.SLACK)
    with pytest.raises(CannotDo, match="approved run-1 already"):
        bench.requests.approve(run.id, None, BOB, Door.CLI)
    assert bench.go(run.id).state is RunState.AWAITING_APPROVAL
    bench.requests.approve(run.id, None, CAT, Door.SLACK)
    assert bench.go(run.id).state is RunState.SUCCEEDED


def test_more_gpus_than_the_limit_need_two_persons(bench: Bench) -> None:
    bench.world.jobs["l1"] = (loss(7, gpus=72),)
    run = bench.go(bench.ask("light", node="l1"))
    assert run.plan is not None
    assert run.plan.approvals_needed == 2


def test_a_shared_account_and_a_machine_cannot_approve(bench: Bench) -> None:
    run = bench.go(bench.ask("light", node="l1"))
    root = Actor(
        id=ActorId("p-root"), kind=ActorKind.PERSON, name="root", roles=frozenset(), shared=True
    )
    alert = Actor(id=ActorId("alert-x"), kind=ActorKind.ALERT, name="x", roles=frozenset())
    with pytest.raises(CannotDo, match="shared account"):
        bench.requests.approve(run.id, None, root, Door.CLI)
    with pytest.raises(CannotDo, match="only a person"):
        bench.requests.approve(run.id, None, alert, Door.WEBHOOK)


def test_another_job_that_would_end_voids_the_approval_and_asks_again(bench: Bench) -> None:
    run = bench.go(bench.ask("light", node="l1"))
    first = run.plan
    bench.world.jobs["l1"] = (loss(7), loss(8))
    bench.requests.approve(run.id, None, BOB, Door.CLI)
    again = bench.go(run.id)
    assert again.state is RunState.AWAITING_APPROVAL
    assert bench.world.effects == []
    assert again.plan is not None
    assert first is not None
    assert again.plan.hash != first.hash
    with pytest.raises(CannotDo, match="changed"):
        bench.requests.approve(run.id, first.hash, BOB, Door.SLACK)


def test_a_job_that_ended_since_the_approval_voids_nothing(bench: Bench) -> None:
    bench.world.jobs["l1"] = (loss(7), loss(8))
    run = bench.go(bench.ask("light", node="l1"))
    bench.world.jobs["l1"] = (loss(8),)
    bench.requests.approve(run.id, None, BOB, Door.CLI)
    assert bench.go(run.id).state is RunState.SUCCEEDED


def test_a_restarted_node_voids_the_approval(bench: Bench) -> None:
    run = bench.go(bench.ask("light", node="l1"))
    bench.world.boot["l1"] = "b2"
    bench.requests.approve(run.id, None, BOB, Door.CLI)
    assert bench.go(run.id).state is RunState.AWAITING_APPROVAL


def test_a_world_that_never_rests_goes_to_a_person_after_three_asks(bench: Bench) -> None:
    run = bench.go(bench.ask("light", node="l1"))
    for boot in range(2, 9):
        if run.state is not RunState.AWAITING_APPROVAL:
            break
        bench.world.boot["l1"] = f"b{boot}"
        bench.requests.approve(run.id, None, BOB, Door.CLI)
        run = bench.go(run.id)
    assert run.state is RunState.NEEDS_PERSON
    assert run.asks == 3
    assert bench.world.effects == []


def test_a_plan_that_nobody_approves_expires_and_nothing_was_done(bench: Bench) -> None:
    run = bench.go(bench.ask("light", node="l1"))
    bench.clock.forward(minutes=16)
    with pytest.raises(CannotDo, match="expired"):
        bench.requests.approve(run.id, None, BOB, Door.CLI)
    assert bench.go(run.id).state is RunState.EXPIRED
    assert bench.world.effects == []


def test_a_denied_plan_ends_the_run(bench: Bench) -> None:
    run = bench.go(bench.ask("light", node="l1"))
    bench.requests.deny(run.id, None, BOB, "bob: not now")
    assert bench.go(run.id).state is RunState.CANCELLED
    assert bench.world.effects == []


def test_breaking_the_glass_acts_without_approval_and_pages(bench: Bench) -> None:
    run = bench.go(bench.ask("light", node="l1"))
    with pytest.raises(CannotDo, match="needs a reason"):
        bench.requests.break_glass(run.id, ANN, Door.CLI, "")
    bench.requests.break_glass(run.id, ANN, Door.CLI, "fire")
    assert bench.go(run.id).state is RunState.SUCCEEDED
    assert any("fire" in page for page in bench.pages())


def test_a_shared_account_cannot_break_the_glass(bench: Bench) -> None:
    run = bench.go(bench.ask("light", node="l1"))
    with pytest.raises(CannotDo, match="ann is a shared account: it cannot say who"):
        bench.requests.break_glass(run.id, replace(ANN, shared=True), Door.CLI, "fire")
    assert bench.go(run.id).state is RunState.AWAITING_APPROVAL
    assert not bench.world.effects
    assert not bench.pages()


def test_where_the_site_wants_a_go_the_requester_may_say_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"light": LIGHT}, autonomy={"default": "propose", "rules": []})
    run = bench.go(bench.ask("light", node="l1"))
    assert run.state is RunState.AWAITING_APPROVAL
    bench.requests.approve(run.id, None, ANN, Door.CLI)
    assert bench.go(run.id).state is RunState.SUCCEEDED


def test_where_the_site_only_observes_nothing_is_done(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"light": LIGHT}, autonomy={"default": "observe", "rules": []})
    run = bench.go(bench.ask("light", node="l1"))
    assert run.state is RunState.SUCCEEDED
    assert bench.world.effects == []


def test_an_abort_before_the_effect_ends_the_run_without_one(bench: Bench) -> None:
    run = bench.go(bench.ask("light", node="l1"))
    bench.requests.stop(run.id, Move.WANT_ABORT, ANN, "ann: wrong node")
    assert bench.go(run.id).state is RunState.CANCELLED
    with pytest.raises(CannotDo, match="cancelled"):
        bench.requests.approve(run.id, None, BOB, Door.CLI)
    assert bench.world.effects == []


def test_where_the_bots_own_right_is_missing_it_is_told_and_nothing_is_done(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, {"light": LIGHT})
    bench.policy = replace(
        bench.policy,
        lacks=lambda _cluster, verb: f"nodewarden may not {verb}" if verb == "lamp.on" else "",
    )
    bench.restart()
    run = bench.go(bench.ask("light", node="l1"))
    assert run.state is RunState.SUCCEEDED
    assert run.plan is not None
    assert (run.plan.gate, run.plan.summary) == ("observe", "nodewarden may not lamp.on")
    assert bench.world.effects == []
