"""A role that is for so many nodes in one request is for no more, however the nodes came to be known."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from audit_log.gate import Gate, Question
from audit_log.records import EventKind, Record
from config.actors import Actor, Door
from config.ids import RunId
from config.node_names import NodeSet
from config.permissions import Decision, Grant, Permission, Role, Scope, Target
from runbooks.machine import RunState
from runbooks.run import Run
from tests.runbooks.engine.lamps import ANN, CLUSTER, LIGHT, Bench
from tests.runbooks.engine.test_steps import ROOMY

BOOK = """\
runbook: {name}
version: 1
title: Switch lamps on
permission: node.drain
parameters:
  node: {{type: node, help: first}}
steps:
  - id: near
    do: lamp.near
    with: {{node: "{{{{ node }}}}"}}
{steps}on_failure: {ends}
"""
ALL_FOUND = """\
  - id: switch
    do: lamp.on
    for_each: steps.near.output.nodes
    stop_after: 3
    with: {node: "{{ item }}"}
"""
AFTER_ONE = """\
  - id: one
    do: lamp.on
    with: {node: "{{ node }}"}
  - id: again
    do: lamp.near
    with: {node: "{{ node }}"}
  - id: switch
    do: lamp.on
    for_each: steps.again.output.nodes
    stop_after: 3
    with: {node: "{{ item }}"}
"""
MAYBE = """\
  - id: one
    do: lamp.on
    with: {node: "{{ node }}"}
  - id: switch
    do: lamp.on
    for_each: steps.near.output.nodes
    when: steps.one is defined
    stop_after: 3
    with: {node: "{{ item }}"}
"""
CALLS = """\
  - id: call
    call: light
    for_each: steps.near.output.nodes
    with: {node: "{{ item }}"}
"""
SWAP = """\
  - id: swap
    do: lamp.swap
    with: {node: "{{ node }}", others: "{{ steps.near.output.nodes }}"}
"""
LOOKS = """\
  - id: see
    do: lamp.read
    for_each: steps.near.output.nodes
    stop_after: 1
    with: {node: "{{ item }}"}
"""


def few(permission: Permission = Permission.NODE_DRAIN) -> Role:
    """Everything everywhere, but this for four nodes in one request."""
    others = frozenset(set(Permission) - {permission})
    limited = Grant(permissions=frozenset({permission}), scope=Scope(max_nodes=4))
    return Role(name="oncall", grants=(Grant(permissions=others), limited))


ADMIN = Role(name="admin", grants=(Grant(permissions=frozenset(Permission)),))


class Gated:
    """Rights that the real gate decides and records."""

    def __init__(self, bench: Bench, role: Role) -> None:
        roles = {role.name: role, "admin": ADMIN}
        self.gate = Gate(bench.ledger, bench.clock, lambda: roles, lambda _: None)
        self.actor: Actor = ANN

    def step(self, run: Run, permission: Permission, nodes: NodeSet, in_request: int) -> Decision:
        target = Target(cluster=run.cluster, nodes=nodes, in_request=in_request)
        return self.gate.check(
            Question(
                actor=self.actor,
                permission=permission,
                target=target,
                door=Door(run.door),
                run=run.id,
            )
        )


Lab = Callable[..., tuple[Bench, Gated, RunId]]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    def made(
        steps: str, near: list[str], role: Role | None = None, ends: str = "stop"
    ) -> tuple[Bench, Gated, RunId]:
        book = BOOK.format(name="reach", steps=steps, ends=ends)
        bench = Bench(tmp_path, {"reach": book, "light": LIGHT}, limits=ROOMY)
        bench.world.near = near
        rights = Gated(bench, role or few())
        bench.rights = rights  # type: ignore[assignment]
        bench.restart()
        rights.gate = Gated(bench, role or few()).gate
        return bench, rights, bench.ask("reach", node="n0")

    return made


def denials(bench: Bench) -> list[Record]:
    return [r for r in bench.ledger.records() if r.event.kind is EventKind.REQUEST_DENIED]


FIVE = [f"n{number}" for number in range(1, 6)]


@pytest.mark.parametrize("steps", [ALL_FOUND, CALLS, SWAP, MAYBE])
@pytest.mark.parametrize("ends", ["stop", "undo", "escalate"])
def test_nodes_that_a_step_found_count_before_anything_is_done(
    lab: Lab, steps: str, ends: str
) -> None:
    bench, _, run = lab(steps, FIVE, ends=ends)
    after = bench.go(run)
    wanted = RunState.NEEDS_PERSON if ends == "escalate" else RunState.FAILED
    count = 6 if steps in {SWAP, MAYBE} else 5
    assert after.state is wanted
    assert f"allows at most 4 nodes in one request, these are {count}" in after.why
    assert "role admin would be enough" in after.why
    assert after.why.endswith("nothing was done")
    assert (bench.world.effects, bench.locks(), after.plan) == ([], {}, None)
    assert [record.event.run for record in denials(bench)] == [run]
    assert len(bench.ledger.query("SELECT 1 FROM runs")) == 1


@pytest.mark.parametrize(("steps", "lit"), [(ALL_FOUND, 4), (CALLS, 4), (AFTER_ONE, 4), (MAYBE, 4)])
def test_as_many_as_the_role_allows_are_done(lab: Lab, steps: str, lit: int) -> None:
    bench, _, run = lab(steps, FIVE[: lit if steps in {ALL_FOUND, CALLS} else lit - 1])
    assert bench.go(run).state is RunState.SUCCEEDED
    assert len(bench.world.effects) == lit
    assert denials(bench) == []


def test_what_was_done_under_an_earlier_plan_counts_with_what_is_found_later(lab: Lab) -> None:
    bench, _, run = lab(AFTER_ONE, FIVE[:4])
    after = bench.go(run)
    assert after.state is RunState.FAILED
    assert "at most 4 nodes in one request, these are 5" in after.why
    assert list(bench.world.owner) == ["n0"]
    assert len(denials(bench)) == 1


def test_a_wider_role_that_is_taken_away_in_the_middle_counts_no_more(lab: Lab) -> None:
    bench, rights, run = lab(ALL_FOUND, FIVE)
    rights.actor = replace(ANN, roles=frozenset({"oncall", "admin"}))

    def demote() -> None:
        rights.actor = ANN

    bench.world.before_write = demote
    after = bench.go(run)
    assert after.state is RunState.FAILED
    assert "at most 4 nodes in one request, these are 5" in after.why
    assert list(bench.world.owner) == ["n1"]


def test_looks_over_many_nodes_count_too(lab: Lab) -> None:
    bench, _, run = lab(LOOKS, FIVE, few(Permission.NODE_READ))
    after = bench.go(run)
    assert after.state is RunState.FAILED
    assert "at most 4 nodes in one request, these are 5" in after.why
    assert len(denials(bench)) == 1
    assert not [key for key, step in after.steps.items() if key.startswith("see") and step.output]


def test_the_place_of_a_run_is_its_cluster(lab: Lab) -> None:
    bench, _, run = lab(ALL_FOUND, FIVE)
    bench.go(run)
    (record,) = denials(bench)
    assert (record.event.cluster, record.event.data["nodes"]) == (CLUSTER, "n[1-5]")
