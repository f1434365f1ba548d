"""What the ledger holds out and costs: verifying, many submitting threads, bytes for each run."""

import threading
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from actions.simulated.plugs import Plugs
from actions.simulated.scenes import scale
from actions.simulated.server import SimulationServer
from actions.simulated.stage import Stage
from audit_log.records import Event, EventKind
from audit_log.verify import verify
from config.actors import ENGINE
from config.ids import RunId
from config.node_names import NodeName
from config.system_clock import SystemClock
from runbooks.engine import Engine as Advancer
from tests.bench.ground import Engine, open_engine
from tests.bench.rows import Number, quantile

THREADS = 32
RUNS_A_DAY = 200
YEARS = 2


def verify_rate(database: Path) -> list[Number]:
    """Records a second of `audit verify`."""
    rates = []
    count = 0
    for _ in range(3):
        begun = time.monotonic()
        report = verify(database)
        rates.append(report.records / (time.monotonic() - begun))
        assert report.sound, report.findings
        count = report.records
    return [
        Number(
            name="audit verify",
            value=quantile(rates, 0.5),
            unit="records/s",
            target=">= 400000",
            samples=len(rates),
            under=f"{count:,} rows, median",
        )
    ]


def storm(folder: Path, each: int) -> list[Number]:
    """Threads that all submit at once: the chain must not fork."""
    with TemporaryDirectory(dir=folder) as room:
        engine = open_engine(Path(room))
        ledger = engine.parts.ledger
        gate = threading.Event()

        def submit(number: int) -> None:
            gate.wait()
            for turn in range(each):
                event = Event(
                    kind=EventKind.REQUEST_REFUSED,
                    actor=ENGINE.id,
                    data={"verb": "run", "why": f"{number}/{turn}"},
                )
                ledger.commit(lambda transaction, event=event: transaction.append(event))  # type: ignore[misc]

        threads = [threading.Thread(target=submit, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        begun = time.monotonic()
        gate.set()
        for thread in threads:
            thread.join()
        took = time.monotonic() - begun
        ledger.close()
        report = verify(Path(room) / "nodewarden.db")
    lost = THREADS * each + 1 - report.records
    under = f"{THREADS} threads, {each} commits each, {THREADS * each / took:,.0f} commits/s"
    return [
        Number(
            name="forks and lost records",
            value=len(report.findings) + lost,
            unit="",
            target="<= 0",
            samples=report.records,
            under=under,
        )
    ]


def bytes_per_run(folder: Path, runs: int) -> list[Number]:
    """How much the database and its artefacts grow with each run, and in two years."""
    drains = _growth(folder, "drain-node", runs)
    repairs = _growth(folder, "node-dropped", runs)
    largest = max(drains, repairs)
    return [
        Number(name="bytes of a drain-node run", value=drains, unit="B", samples=runs),
        Number(
            name="bytes of a node-dropped run",
            value=repairs,
            unit="B",
            samples=runs,
            under="cause A4b: facts, evidence, drain, a person is asked",
        ),
        Number(
            name="ledger in two years",
            value=largest * RUNS_A_DAY * 365 * YEARS / 1e9,
            unit="GB",
            target="<= 10",
            under=f"{RUNS_A_DAY} runs a day, each as large as the larger of the two",
        ),
    ]


def _growth(folder: Path, runbook: str, runs: int) -> float:
    """Bytes on disk for each run of this runbook, carried out on the simulated cluster."""
    with TemporaryDirectory(dir=folder) as room, ExitStack() as stack:
        socket = Path(room) / "sim.sock"
        clock = SystemClock()
        stage = Stage(scale(2 * runs, starts_at=clock.now().wall), clock)
        stack.enter_context(SimulationServer(stage, socket))
        before = _size_after(Path(room), socket, runbook, ())
        names = tuple(sorted(stage.world.state.nodes))[-runs:]
        return (_size_after(Path(room), socket, runbook, names) - before) / runs


def _size_after(folder: Path, socket: Path, runbook: str, names: tuple[NodeName, ...]) -> int:
    """Bytes of the database and its artefacts once a run for each of these nodes has gone by."""
    engine = open_engine(folder, socket)
    for name in names:
        if runbook == "drain-node":
            run = engine.ask(runbook, nodes=[name], reason="measured")
        else:
            Plugs(path=socket).pull("lose_gpus", node=name, present=7)
            run = engine.ask(runbook, node=name)
        _carry_out(engine, run)
    engine.parts.ledger.close()  # the log goes into the database with the last connection
    aside = {".ballast", ".lock"}
    return sum(
        file.stat().st_size
        for file in folder.rglob("*")
        if file.is_file() and file.suffix not in aside
    )


def _carry_out(engine: Engine, run: RunId) -> None:
    """As far as it gets by itself."""
    advancer = Advancer(engine.parts)
    for _ in range(5):
        advancer.advance(run)
    ((state, body),) = engine.parts.ledger.query(
        "SELECT state, body FROM runs WHERE id = ?", (run,)
    )
    assert state in {"succeeded", "needs_person", "awaiting_approval"}, (state, body)
