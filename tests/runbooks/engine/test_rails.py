"""What holds runs back, decision by decision: budget, correlation, the plan's hash, the stop button."""

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from actions.cluster import Controller, Node, NodeBase, Snapshot
from actions.contract import JobLoss, Observation, Standing
from audit_log.records import EventKind
from config.actors import Door
from config.ids import ClusterName, JobId, StepId
from config.node_names import NodeName
from config.policy import Limits
from runbooks.machine import RunState
from runbooks.plan import Plan, PlannedStep, deviation
from runbooks.policy import Pool
from runbooks.projection import SCHEMA, RunProjector
from runbooks.rails import correlated, over_budget
from runbooks.requests import CannotDo
from tests.runbooks.engine.lamps import BOB, CLUSTER, LIGHT, Bench

NOW = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)
POOL = Pool(name="all", nodes=frozenset(NodeName(f"n{number}") for number in range(9)), max_out=2)
LOSS = JobLoss(
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
STEP = PlannedStep(
    key="drain",
    step=StepId("drain"),
    action="node.drain@1",
    node=NodeName("n1"),
    arguments={},
    certain=True,
    boot_id="b1",
    owner="nobody",
)


def node(name: str, base: NodeBase = NodeBase.IDLE, *flags: str) -> Node:
    return Node(name=NodeName(name), base=base, flags=frozenset(flags))


def by_name(nodes: Iterable[Node]) -> dict[NodeName, Node]:
    return {one.name: one for one in nodes}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, {"light": LIGHT})


def test_the_budget_counts_what_others_took_out() -> None:
    drained = by_name([node("n1", NodeBase.IDLE, "DRAIN"), node("n2", NodeBase.DOWN), node("n3")])
    assert "n3 stays in" in over_budget(POOL, drained, [], NodeName("n3"))
    up = by_name([node("n1"), node("n2", NodeBase.DOWN), node("n3")])
    assert over_budget(POOL, up, [], NodeName("n3")) == ""


def test_a_node_that_is_out_already_costs_nothing_more() -> None:
    out = by_name([node(f"n{number}", NodeBase.DOWN) for number in range(3)])
    assert over_budget(POOL, out, [], NodeName("n2")) == ""


def _dropped(count: int, ago: timedelta = timedelta(minutes=1)) -> Snapshot:
    down = [
        replace(
            node(f"n{number}", NodeBase.DOWN), features=frozenset({"rack1"}), reason_at=NOW - ago
        )
        for number in range(count)
    ]
    whole = [replace(node(f"n{number}"), features=frozenset({"rack1"})) for number in range(5, 9)]
    return Snapshot(
        cluster=ClusterName("lab"),
        taken_at=NOW,
        controller=Controller(
            cluster=ClusterName("lab"),
            version="25.11.0",
            booted_at=None,
            slurmd_timeout=timedelta(minutes=5),
            return_to_service=1,
        ),
        nodes=by_name([*down, *whole]),
        jobs=(),
    )


def test_three_nodes_of_a_rack_that_drop_together_are_one_incident() -> None:
    limits = Limits()
    assert correlated(_dropped(3), NodeName("n0"), limits, NOW) == ("n0", "n1", "n2")
    assert correlated(_dropped(2), NodeName("n0"), limits, NOW) == ()
    assert correlated(_dropped(3, timedelta(hours=2)), NodeName("n0"), limits, NOW) == ()


@pytest.mark.parametrize(
    "other",
    [
        {"jobs_end": (LOSS,)},
        {"jobs_end": (replace(LOSS, lost=True),)},
        {"boot_id": "b2"},
        {"owner": "dana"},
        {"state": "DOWN"},
        {"reason": "RMA"},
        {"arguments": {"reason": "x"}},
        {"node": NodeName("n2")},
        {"action": "node.drain@2"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_the_hash_covers_what_could_make_the_yes_wrong(other: dict[str, object]) -> None:
    plan = Plan(steps=(STEP,), locks=(), pinned={})
    changed = replace(plan, steps=(replace(STEP, **other),))  # type: ignore[arg-type]
    assert changed.hash != plan.hash


def test_the_hash_tells_a_job_that_ends_from_one_that_is_lost() -> None:
    ends = Plan(steps=(replace(STEP, jobs_end=(LOSS,)),), locks=(), pinned={})
    lost = Plan(steps=(replace(STEP, jobs_end=(replace(LOSS, lost=True),)),), locks=(), pinned={})
    assert ends.hash != lost.hash


def test_a_node_that_changed_hands_voids_the_plan() -> None:
    seen = Observation(standing=Standing.NOT_SO, why="", boot_id="b1", owner="dana")
    assert "belonged to nobody, now to dana" in deviation(STEP, seen, "us:run-1")
    ours = replace(seen, owner="us:run-1")
    assert deviation(STEP, ours, "us:run-1") == ""


def test_no_intent_is_made_while_the_stop_button_is_pressed(bench: Bench) -> None:
    bench.parts.halt.set("smoke in row 4")
    run = bench.go(bench.ask("light", node="l1"))
    assert EventKind.STEP_INTENDED not in bench.kinds(run.id)
    assert bench.world.effects == []


def test_no_runbook_acts_on_a_protected_host(bench: Bench) -> None:
    object.__setattr__(bench.policy, "protected", {CLUSTER: frozenset({NodeName("l1")})})
    run = bench.go(bench.ask("light", node="l1"))
    assert run.state is RunState.NEEDS_PERSON
    assert "protected host" in run.why
    assert bench.world.effects == []


def test_a_yes_that_comes_too_late_does_not_count(bench: Bench) -> None:
    bench.world.jobs["l1"] = (LOSS,)
    run = bench.go(bench.ask("light", node="l1"))
    assert run.state is RunState.AWAITING_APPROVAL
    bench.clock.forward(minutes=16)
    with pytest.raises(CannotDo, match="expired"):
        bench.requests.approve(run.id, None, BOB, Door.SLACK)


def test_every_table_that_the_engine_makes_is_made_again_by_a_rebuild() -> None:
    made = re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", SCHEMA)
    assert sorted(made) == sorted(RunProjector.tables)
