"""A lock on a node that left its cluster is named, and an abort frees it whatever state the run is in."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bot.left_nodes import LeftNodes
from config.ids import ClusterName
from config.node_names import NodeName
from runbooks.journal import Journal
from runbooks.machine import Move, RunState
from tests.bot.whole import whole
from tests.runbooks.engine.lamps import ANN, LIGHT, Bench

WAITS = """\
runbook: waits
version: 1
title: Switch two lamps on, the second once the first is lit by somebody
permission: node.drain
parameters:
  nodes: {type: nodes, help: which}
steps:
  - id: switch
    do: lamp.on
    for_each: nodes
    with: {node: "{{ item }}"}
  - id: lit
    do: lamp.lit
    with: {node: l9}
on_failure: undo
"""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, {"waits": WAITS, "light": LIGHT})


def left(bench: Bench, *here: str) -> tuple[str, ...]:
    """What is said of a cluster that has only these nodes."""
    snapshot: Any = SimpleNamespace(nodes={NodeName(name): None for name in here})
    return LeftNodes(bench.ledger, lambda _: snapshot).lines()


def test_the_run_its_nodes_and_what_frees_them_are_named(bench: Bench) -> None:
    bench.go(bench.ask("waits", nodes=["l1", "l2", "l3"]))
    assert left(bench, "l2") == (
        "run-1 holds l[1,3], which are no longer in the inventory of lab; if that is for good, "
        "`abort run-1` frees it",
    )
    assert left(bench, "l1", "l2", "l3") == ()


def test_nothing_is_said_of_a_cluster_that_was_not_read_yet(bench: Bench) -> None:
    bench.go(bench.ask("waits", nodes=["l1"]))
    assert LeftNodes(bench.ledger, lambda _: None).lines() == ()


@pytest.mark.parametrize("before", [None, Move.WANT_PAUSE, Move.WANT_TAKEOVER])
def test_an_abort_frees_the_lock_of_a_node_that_left(bench: Bench, before: Move | None) -> None:
    run = bench.go(bench.ask("waits", nodes=["l1"])).id
    if before is not None:
        bench.requests.stop(run, before, ANN, "ann: wait")
        bench.go(run)
    assert bench.locks()
    bench.world.gone.add("l1")
    for _ in range(2):  # the first may end in "cannot be taken back", which a person is told
        if bench.run(run).open:
            bench.requests.stop(run, Move.WANT_ABORT, ANN, "ann: gone")
            bench.go(run)
    assert bench.run(run).state.final
    assert not bench.locks()


def test_an_abort_frees_the_lock_under_an_effect_that_nobody_can_look_at_any_more(
    bench: Bench,
) -> None:
    run = bench.ask("light", node="l1")
    bench.world.answers = ["lost"]
    bench.world.before_write = lambda: bench.world.gone.add("l1")
    bench.go(run)
    bench.requests.stop(run, Move.WANT_ABORT, ANN, "ann: gone")
    bench.go(run)
    assert bench.locks()  # the effect may still happen: it is not let go before its limit
    bench.clock.forward(minutes=11)
    assert bench.go(run).state is RunState.NEEDS_PERSON
    bench.requests.stop(run, Move.WANT_ABORT, ANN, "ann: gone")
    assert bench.go(run).state is RunState.CANCELLED
    assert not bench.locks()


def test_status_and_doctor_name_it(tmp_path: Path) -> None:
    with whole(tmp_path) as site:
        run = site.says("ann", "drain gpu-066 fan").run
        assert run is not None
        Journal(site.bot.parts).take_locks(run, ["node:gpu-066"], ["sim/node:gpu-066"])
        assert "inventory" not in site.told("ann", "status")
        lab, seen = ClusterName("sim"), site.bot.inventory._seen
        nodes = {name: node for name, node in seen[lab].nodes.items() if name != "gpu-066"}
        seen[lab] = replace(seen[lab], nodes=nodes)
        said = f"{run} holds gpu-066, which is no longer in the inventory of sim"
        assert said in site.told("ann", "status")
        assert said in site.told("ann", "doctor")
