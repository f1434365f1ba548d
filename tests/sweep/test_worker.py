"""The worker: what is asked of a run while it is carried out is not lost."""

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from config.actors import Door
from config.ids import RunId
from config.steady_clock import SteadyClock
from runbooks.engine import Engine
from runbooks.later import Later
from runbooks.machine import RunState
from runbooks.worker import Worker
from tests.patience import DEADLINE
from tests.runbooks.engine.lamps import BOB, LIGHT, Bench
from tests.sweep.night import OneByOne

NEXT_YEAR = datetime(2027, 11, 30, tzinfo=UTC)


class LooksTooEarly:
    """An engine that has read the run just before it was approved, and so would look next year."""

    def __init__(self) -> None:
        self.worker: Worker | None = None
        self.calls = 0
        self.again = threading.Event()

    def park(self) -> None:
        """It holds nothing."""

    def advance(self, run: RunId) -> Later:
        self.calls += 1
        if self.calls == 1 and self.worker is not None:
            self.worker.changed(run)
            return Later(at=NEXT_YEAR)
        self.again.set()
        return Later(at=NEXT_YEAR)


def test_what_is_asked_while_a_run_is_carried_out_is_looked_at_right_after(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"light": LIGHT})
    bench.ask("light", node="l1")
    engine = LooksTooEarly()
    worker = Worker(bench.parts, cast(Engine, engine), SteadyClock(bench.clock))
    engine.worker = worker
    worker.start()
    try:
        assert engine.again.wait(DEADLINE)
    finally:
        worker.stop()
        bench.ledger.close()


@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_is_set_lets_no_plan_expire_and_makes_nothing_wait(
    tmp_path: Path, hours: int
) -> None:
    bench = Bench(tmp_path, {"light": LIGHT}, autonomy={"default": "propose", "rules": []})
    steady = SteadyClock(bench.clock)
    worker = OneByOne(bench.parts, bench.engine, steady)
    run = bench.ask("light", node="l1")
    worker.tick()
    bench.clock.jump(timedelta(hours=hours))
    bench.clock.forward(minutes=1)
    worker.tick()
    assert bench.run(run).state is RunState.AWAITING_APPROVAL
    bench.requests.approve(run, None, BOB, Door.CLI)
    worker.changed(run)
    worker.tick()
    assert bench.run(run).state is RunState.SUCCEEDED
    bench.ledger.close()
