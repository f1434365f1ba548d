"""A verb that names a number of persons is done only where so many agree, whatever else is planned."""

from dataclasses import replace
from pathlib import Path

import pytest

from actions.contract import ActionSpec, JobLoss
from config.actors import Door
from config.ids import JobId, StepId
from config.node_names import NodeName
from config.policy import Autonomy, Limits
from runbooks.machine import RunState
from runbooks.plan import Plan, PlannedStep
from runbooks.rails import PlanGate, needed
from runbooks.requests import CannotDo
from tests.runbooks.engine.lamp_world import LampOn
from tests.runbooks.engine.lamps import ANN, BOB, CAT, LIGHT, Bench

STEP = PlannedStep(
    key="off",
    step=StepId("off"),
    action="power.off@1",
    node=NodeName("n1"),
    arguments={},
    certain=True,
    persons=2,
)
LIMITS = Limits()


def plan(*steps: PlannedStep) -> Plan:
    return Plan(steps=steps, locks=(), pinned={})


def loss(**changes: object) -> JobLoss:
    found = JobLoss(
        job=JobId("7"),
        slurm_id=7,
        user="ann",
        name="train",
        gpus=8,
        nodes=1,
        comes_back=True,
        lost=False,
        why="it ends",
    )
    return replace(found, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("autonomy", [Autonomy.ACT, Autonomy.PROPOSE])
def test_no_autonomy_takes_the_two_persons_away(autonomy: Autonomy) -> None:
    found = needed(plan(STEP), autonomy, LIMITS)
    assert (found.gate, found.persons) == (PlanGate.APPROVE, 2)
    assert found.why == "power.off is done only where 2 persons agree"


def test_a_step_that_may_be_skipped_wants_its_persons_too() -> None:
    later = replace(STEP, certain=False, arguments=None)
    first = replace(STEP, key="hold", action="node.drain@1", persons=0)
    assert needed(plan(first, later), Autonomy.ACT, LIMITS).persons == 2


def test_one_job_that_ends_does_not_make_one_person_enough() -> None:
    found = needed(plan(replace(STEP, jobs_end=(loss(),))), Autonomy.ACT, LIMITS)
    assert found.persons == 2
    assert found.why.startswith("power.off")


def test_where_work_is_lost_that_is_what_people_read() -> None:
    found = needed(plan(replace(STEP, jobs_end=(loss(lost=True),))), Autonomy.ACT, LIMITS)
    assert (found.persons, found.why) == (2, "work of 1 job would be lost")


def test_where_the_site_only_observes_nobody_is_asked() -> None:
    assert needed(plan(STEP), Autonomy.OBSERVE, LIMITS).gate is PlanGate.OBSERVE


class StrictLamp(LampOn):
    """A lamp that ends no job and is lit by two persons only."""

    spec: ActionSpec = replace(LampOn.spec, persons=2)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(LampOn, "spec", StrictLamp.spec)
    return Bench(tmp_path, {"light": LIGHT})


def test_one_approver_is_not_enough_and_the_requester_is_none(bench: Bench) -> None:
    run = bench.go(bench.ask("light", node="l1"))
    assert run.state is RunState.AWAITING_APPROVAL
    with pytest.raises(CannotDo, match="somebody else must approve"):
        bench.requests.approve(run.id, None, ANN, Door.SLACK)
    bench.requests.approve(run.id, None, BOB, Door.CLI)
    assert bench.go(run.id).state is RunState.AWAITING_APPROVAL
    with pytest.raises(CannotDo, match="approved run-1 already"):
        bench.requests.approve(run.id, None, BOB, Door.SLACK)
    assert bench.world.effects == []
    bench.requests.approve(run.id, None, CAT, Door.CLI)
    assert bench.go(run.id).state is RunState.SUCCEEDED
    assert len(bench.world.effects) == 1
