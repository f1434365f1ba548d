"""Journaled steps a second, beside what SQLite itself commits on the same disk in the same run."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from actions.contract import ActionSpec, Observation, Standing
from audit_log.database import open_blank
from audit_log.encoding import canonical
from config.ids import RunId, StepId
from config.node_names import NodeName
from runbooks.intents import Intent
from runbooks.journal import Finished
from runbooks.next_step import Place
from runbooks.plan import Plan
from runbooks.rails import Needed, PlanGate
from runbooks.worker import THREADS
from tests.bench.ground import DATA, Engine, open_engine
from tests.bench.rows import Number

PAIRS = 8
"""Steps of one run: drain-node over so many nodes."""


def steps_per_second(folder: Path, *, seconds: float) -> list[Number]:
    """Intent and outcome of `node.drain`, each its own durable commit, by the worker's threads."""
    engine = open_engine(folder)
    try:
        rows = engine.parts.ledger.head.seq
        before = raw_commits(folder, seconds / 2)
        done, took, busy = _steps(engine, seconds)
        after = raw_commits(folder, seconds / 2)
    finally:
        engine.parts.ledger.close()
    return [
        Number(
            name="journaled steps",
            value=done / took,
            unit="/s",
            target=">= 2000",
            baseline=(before + after) / 2,
            samples=done,
            under=f"{THREADS} threads, {rows:,} rows, 2 commits a step; "
            "baseline: commits/s of raw SQLite, one after the other",
        ),
        Number(
            name="CPU of a journaled step",
            value=busy / done * 1e6,
            unit="us",
            samples=done,
            under="all threads of the process; 500 leave room for 2,000/s on one core",
        ),
    ]


def raw_commits(folder: Path, seconds: float) -> float:
    """Commits a second of one row as long as a record, on one connection with the same settings."""
    path = folder / f"raw-{time.monotonic_ns()}.db"
    raw = open_blank(path)
    raw.execute("PRAGMA journal_mode=wal")
    raw.execute("PRAGMA synchronous=full")
    raw.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
    text = canonical(DATA[0])
    count, begun = 0, time.monotonic()
    while time.monotonic() < begun + seconds:
        raw.execute("BEGIN IMMEDIATE")
        raw.execute("INSERT INTO t (b) VALUES (?)", (text,))
        raw.execute("COMMIT")
        count += 1
    took = time.monotonic() - begun
    raw.close()
    return count / took


def _steps(engine: Engine, seconds: float) -> tuple[int, float, float]:
    """Steps done by all threads together, how long that took, and how long a core was busy."""
    steppers = [_Stepper(engine, number) for number in range(THREADS)]
    for stepper in steppers:
        stepper.prepare(int(seconds * 400 / PAIRS) + 2)
    gate = threading.Event()
    threads = [
        threading.Thread(target=stepper.go, args=(gate.wait, seconds)) for stepper in steppers
    ]
    for thread in threads:
        thread.start()
    begun, busy = time.monotonic(), time.process_time()
    gate.set()
    for thread in threads:
        thread.join()
    done = sum(stepper.done for stepper in steppers)
    return done, time.monotonic() - begun, time.process_time() - busy


class _Stepper:
    """What one of the worker's threads does, without the looks at the cluster."""

    def __init__(self, engine: Engine, number: int) -> None:
        self._engine = engine
        self._number = number
        self._ready: list[tuple[RunId, list[NodeName]]] = []
        self._spec: ActionSpec = engine.parts.specs["node.drain"]
        step = engine.requests.definition("drain-node").runbook.step(StepId("drain"))
        assert step is not None
        self._step = step
        self.done = 0

    def prepare(self, runs: int) -> None:
        """Runs that hold their locks and may act."""
        for turn in range(runs):
            nodes = [NodeName(f"n{self._number}-{turn}-{count:02d}") for count in range(PAIRS)]
            run = self._engine.begin("drain-node", nodes=list(nodes), reason="measured")
            self._engine.journal.plan(run, _PLAN, "", _NOBODY)
            locks = [f"node:{node}" for node in nodes]
            self._engine.journal.take_locks(run, locks, [f"sim/{lock}" for lock in locks])
            self._ready.append((run, nodes))

    def go(self, wait: Callable[[], object], seconds: float) -> None:
        """Step after step until the time is over."""
        wait()
        end = time.monotonic() + seconds
        while self._ready and time.monotonic() < end:
            run, nodes = self._ready.pop()
            for node in nodes:
                self._one(run, node)
                self.done += 1

    def _one(self, run: RunId, node: NodeName) -> None:
        place = Place(
            key=f"drain@{node}",
            step=self._step,
            node=node,
            arguments={"node": node, "reason": "measured"},
        )
        intent = Intent(
            place=place,
            spec=self._spec,
            attempt=1,
            seen=_SEEN,
            expires_at=self._engine.parts.clock.now().wall + timedelta(seconds=20),
            pool=None,
            nodes={},
            instance=self._engine.parts.ledger.instance,
        )
        why = self._engine.journal.intend(run, run, intent, (run, _PLAN.hash))
        assert not why, why
        assert self._engine.journal.finish(run, place, self._spec, 1, _DONE)


_PLAN = Plan(steps=(), locks=(), pinned={})
_NOBODY = Needed(gate=PlanGate.NONE, persons=0, why="measured")
_SEEN = Observation(
    standing=Standing.NOT_SO,
    why="gpu-0001 is IDLE",
    boot_id="0d9b2f5e-2f0a-4c55-9d0f-1f6a2b1f7d11",
    owner="nobody",
    state="IDLE",
)
_DONE = Finished(
    "done",
    output={"state": "IDLE+DRAIN", "reason": "nw measured [run-1/0a1b2c3d]", "why": "measured"},
    mark_text="nw measured [run-1/0a1b2c3d]",
)
