"""How long a large cluster takes: a snapshot through Slurm's tools, and a plan over all of its nodes."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from actions.shell import Runner
from actions.simulated.scenes import scale
from actions.simulated.server import SimulationServer
from actions.simulated.stage import Stage
from actions.slurm.cli import SlurmCli
from actions.slurm.jobs import ROW_FIELDS
from actions.slurm.tools import SlurmSettings
from config.ids import ClusterName
from config.system_clock import SystemClock
from runbooks.frames import Frames
from runbooks.planner import items
from tests.bench import multiplied
from tests.bench.ground import open_engine
from tests.bench.rows import Number, quantile

RECORDED = Path(__file__).parents[1] / "recordings" / "22.05"
PARTITIONS = Path(__file__).parents[1] / "actions" / "slurm" / "partitions.txt"
MARK = "\x01"


def snapshot_times(folder: Path, *, nodes: int, jobs: int, times: int) -> list[Number]:
    """A whole snapshot by each back end, with and without a long queue; answers come from files."""
    return [
        _snapshot(folder, Asked(backend, nodes, queue), times if not queue else max(1, times // 2))
        for backend in ("cli", "pyslurm")
        for queue in (0, jobs)
    ]


@dataclass(frozen=True, slots=True)
class Asked:
    """Which snapshot."""

    backend: str
    nodes: int
    jobs: int

    @property
    def name(self) -> str:
        """As the table shows it."""
        queue = f" and {self.jobs:,} jobs" if self.jobs else ""
        return f"snapshot of {self.nodes:,} nodes{queue} by {self.backend}"


@contextmanager
def long_snapshot(folder: Path, jobs: int, nodes: int = 5_000) -> Iterator[Callable[[], int]]:
    """Something that takes a whole new snapshot at each call and tells how many jobs are in it."""
    with TemporaryDirectory(dir=folder) as room:
        tools = _tools(Path(room), nodes, jobs)
        yield lambda: len(_hands(tools).snapshot().jobs)


def _hands(tools: Path, backend: str = "cli") -> SlurmCli:
    """A client that has asked nothing yet."""
    settings = SlurmSettings(
        cluster=ClusterName("mini"),
        path=f"{tools}:/usr/bin:/bin",
        own_user="nodewarden",
        read_limit=timedelta(seconds=60),
        backend=backend,
    )
    return SlurmCli(settings, Runner(), SystemClock(), lambda _: None)


def _snapshot(folder: Path, asked: Asked, times: int) -> Number:
    with TemporaryDirectory(dir=folder) as room:
        release = "22.05" if asked.backend == "cli" else "25.11"
        tools = _tools(Path(room), asked.nodes, asked.jobs, release)
        library = multiplied.install(Path(room), nodes=asked.nodes, jobs=asked.jobs)
        sys.path.insert(0, str(library))
        try:
            took = [_timed(tools, asked) for _ in range(times)]
        finally:
            sys.path.remove(str(library))
        by_tools = asked.backend == "cli"
        return Number(
            name=asked.name,
            value=quantile(took, 0.5),
            unit="s",
            target="" if asked.jobs else "<= 1.5",
            baseline=_copied(tools) if by_tools else None,
            samples=times,
            under="text answers; baseline: the tools' answers read into memory"
            if by_tools
            else "recorded values many times over: without the library's own share",
        )


def _timed(tools: Path, asked: Asked) -> float:
    hands = _hands(tools, asked.backend)
    begun = time.monotonic()
    found = hands.snapshot()
    took = time.monotonic() - begun
    assert (len(found.nodes), len(found.jobs)) == (asked.nodes, asked.jobs)
    return took


def _copied(tools: Path) -> float:
    """How long it takes only to read what the tools print."""
    begun = time.monotonic()
    for file in tools.glob("*.txt"):
        file.read_bytes()
    return time.monotonic() - begun


def _tools(room: Path, nodes: int, jobs: int, release: str = "22.05") -> Path:
    """`scontrol` and `squeue` that print prepared answers."""
    tools = room / "tools"
    tools.mkdir()
    (tools / "config.txt").write_text(
        (RECORDED.parent / release / "scontrol-config.txt").read_text()
    )
    (tools / "res.txt").write_text("No reservations in the system\n")
    (tools / "partitions.txt").write_text(
        PARTITIONS.read_text().replace("gpu-[01-08]", f"gpu-[00001-{nodes:05}]")
    )
    record = (RECORDED / "scontrol-nodes.txt").read_text().split("\n\n")[1]
    record = record.replace("State=MIXED", "State=IDLE").replace("AllocTRES=cpu=1", "AllocTRES=")
    record = record.replace("CPUAlloc=1", "CPUAlloc=0")
    (tools / "nodes.txt").write_text(
        "".join(record.replace("gpu-02", f"gpu-{n:05}") + "\n\n" for n in range(1, nodes + 1))
    )
    rows = (
        _JOB | {"JobID": str(n), "JobArrayID": str(n), "ArrayJobID": str(n)}
        for n in range(1, jobs + 1)
    )
    (tools / "rows.txt").write_text(
        "".join(MARK.join(row[field] for field in ROW_FIELDS) + MARK + "\n" for row in rows)
    )
    (tools / "excluded.txt").write_text("".join(f"{n}{MARK}{MARK}\n" for n in range(1, jobs + 1)))
    for name, text in (("scontrol", _SCONTROL), ("squeue", _SQUEUE), ("sdiag", _SDIAG)):
        script = tools / name
        script.write_text(text.format(python=sys.executable, tools=tools, mark=MARK))
        script.chmod(0o755)
    return tools


_SCONTROL = """#!/bin/sh
case "$*" in
  *--version*) echo "slurm 22.05.8" ;;
  *--json*) echo "scontrol: unrecognized option '--json'" >&2; exit 1 ;;
  *"show config"*) exec cat {tools}/config.txt ;;
  *"show nodes"*) exec cat {tools}/nodes.txt ;;
  *"show partitions"*) exec cat {tools}/partitions.txt ;;
  *"show reservations"*) exec cat {tools}/res.txt ;;
  *) exit 1 ;;
esac
"""
_SQUEUE = """#!{python} -IS
import re, sys
line = " ".join(sys.argv)
if "--json" in line:
    sys.exit("squeue: unrecognized option '--json'")
mark = re.search(r"[|]x[0-9a-f]+[|]", line)[0]
name = "rows" if "--Format" in line else "excluded"
sys.stdout.write(open("{tools}/" + name + ".txt").read().replace("{mark}", mark))
"""
_SDIAG = """#!/bin/sh
echo "Server thread count:  3"
"""
_JOB = dict.fromkeys(ROW_FIELDS, "N/A") | {
    "UserName": "ann",
    "Account": "research",
    "State": "PENDING",
    "Reason": "Priority",
    "Partition": "train",
    "NodeList": "",
    "ReqNodes": "",
    "NumNodes": "8",
    "NumTasks": "64",
    "tres-alloc": "cpu=512,mem=8T,node=8,gres/gpu=64",
    "BatchFlag": "1",
    "Requeue": "1",
    "RestartCnt": "0",
    "PriorityLong": "4294901759",
    "QOS": "normal",
    "Reservation": "(null)",
    "Dependency": "(null)",
    "SubmitTime": "2026-11-30T16:54:41",
    "TimeLimit": "7-00:00:00",
    "Cluster": "mini",
    "Comment": "ckpt=/ckpt/llama/last",
    "Name": "pretrain-70b",
}


def plan_times(folder: Path, sizes: tuple[int, ...]) -> list[Number]:
    """The plan of drain-node over every node of a simulated cluster."""
    return [_plan(folder, size) for size in sizes]


def _plan(folder: Path, nodes: int) -> Number:
    with TemporaryDirectory(dir=folder) as room, ExitStack() as stack:
        socket = Path(room) / "sim.sock"
        clock = SystemClock()
        stage = Stage(scale(nodes, starts_at=clock.now().wall), clock)
        stack.enter_context(SimulationServer(stage, socket))
        engine = open_engine(Path(room), socket)
        stack.callback(engine.parts.ledger.close)
        names = sorted(next(iter(engine.parts.clusters.values())).snapshot().nodes)
        run = engine.begin("drain-node", nodes=list(names), reason="measured")
        frames = Frames(engine.parts)
        frame = frames.frame(run)
        assert frame is not None
        begun = time.monotonic()
        plan = frames.fresh_plan(frame, tuple(items(frame)))
        took = time.monotonic() - begun
        assert len(plan.steps) == nodes
    return Number(
        name=f"plan for {nodes:,} nodes",
        value=took,
        unit="s",
        under="drain-node on the simulated cluster, with one snapshot of it and one question to all "
        "hosts; the goal is 2 s for 10,000",
    )
