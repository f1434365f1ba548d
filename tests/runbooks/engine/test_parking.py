"""A bot that is told to end parks each run at its next step boundary, not after its last step."""

import threading
from pathlib import Path

from config.steady_clock import SteadyClock
from runbooks.machine import RunState
from runbooks.run import StepState
from runbooks.worker import Worker
from tests.patience import DEADLINE, until
from tests.runbooks.engine.lamps import Bench

ROW = """\
runbook: row
version: 1
title: Switch a row of lamps on
permission: node.drain
parameters:
  nodes: {type: nodes, help: which}
steps:
  - id: switch
    do: lamp.on
    for_each: nodes
    with: {node: "{{ item }}"}
on_failure: stop
"""
NODES = ["l1", "l2", "l3", "l4"]


def test_the_step_under_way_is_finished_and_the_next_one_is_not_begun(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"row": ROW})
    worker = Worker(bench.parts, bench.engine, SteadyClock(bench.clock))
    ending = threading.Thread(target=worker.stop)

    def end_the_bot() -> None:
        if not ending.ident:
            ending.start()
            until(lambda: worker._stopping and bench.engine._parked)

    bench.world.before_write = end_the_bot
    run = bench.ask("row", nodes=NODES)
    worker.start()
    until(lambda: ending.ident)
    ending.join(DEADLINE)
    assert not ending.is_alive()
    parked = bench.run(run)
    assert parked.state is RunState.RUNNING
    assert parked.intended is None
    assert [step.state for step in parked.steps.values()] == [StepState.DONE]
    assert len(bench.world.effects) == 1
    bench.world.before_write = None
    bench.restart()
    assert bench.go(run).state is RunState.SUCCEEDED
    assert [effect.split()[1] for effect in bench.world.effects] == NODES
