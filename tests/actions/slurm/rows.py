"""A client over a table of answers: jobs in rows, nodes of a recording, snapshots in this process."""

import io
import threading
from dataclasses import dataclass, field

import pytest

from actions.shell import Command, CommandFinished
from actions.slurm.cli import SlurmCli
from actions.slurm.jobs import ROW_FIELDS
from actions.slurm.snapshot_child import print_snapshot
from actions.slurm.tools import SlurmSettings
from config.ids import ClusterName
from config.node_names import NodeName
from tests.actions.slurm.conftest import CONFIG, RECORDINGS, HandClock, ToldRunner, done
from tests.actions.slurm.test_text_that_poses import ROW
from tests.patience import DEADLINE

NODES = (RECORDINGS / "22.05" / "scontrol-nodes.txt").read_text()
RECORD = {record.split()[0][9:]: record for record in NODES.split("\n\n") if record}
GPU_01, GPU_04 = NodeName("gpu-01"), NodeName("gpu-04")
SDIAG = """\
*******************************************************
sdiag output at Mon Nov 30 17:00:00 2026 (1796058000)
*******************************************************
Server thread count:  3
RPC queue enabled:    0
Agent queue size:     0
Agent count:          0
Jobs submitted: 9
"""
REASON = "nw A1 [run-7/0a1b2c3d]"


@dataclass
class RowsRunner(ToldRunner):
    """Also prints jobs in the form it is asked for, and takes snapshots in this process."""

    jobs: list[dict[str, str]] = field(default_factory=list)
    fetches: int = 0
    on_fetch: threading.Event | None = None

    def run(self, command: Command) -> CommandFinished:
        if "actions.slurm.snapshot_child" in command.argv:
            self.fetches += 1
            if self.on_fetch is not None:
                self.on_fetch.wait(DEADLINE)
            out = io.StringIO()
            print_snapshot(command.stdin.decode(), self, out)
            return done(out.getvalue())
        form = next((word for word in command.argv if word.startswith("--Format=")), None)
        if form is None:
            return super().run(command)
        self.asked.append(command)
        mark = form.split(",")[0].partition(":")[2]
        return done(
            "".join("".join(job[name] + mark for name in ROW_FIELDS) + "\n" for job in self.jobs)
        )


@pytest.fixture
def runner() -> RowsRunner:
    runner = RowsRunner()
    runner.tell("sdiag", SDIAG)
    runner.tell("--format=", "")
    runner.tell("show nodes", NODES)
    runner.tell("show partitions", "")
    runner.tell("show reservations", "No reservations in the system\n")
    for name, record in RECORD.items():
        runner.tell(f"show node {name}", record)
    runner.tell("show config", CONFIG)
    runner.tell("scontrol --version", "slurm-wlm 22.05.8\n")
    runner.tell("update", "")
    runner.tell("--json", done(stderr="scontrol: unrecognized option '--json'", code=1))
    runner.jobs = [
        {**ROW, "JobID": "1", "NodeList": "gpu-[01-02]"},
        {**ROW, "JobID": "2", "NodeList": "gpu-03"},
        {**ROW, "JobID": "3", "NodeList": "gpu-09"},
    ]
    return runner


def settings(own_user: str = "nodewarden") -> SlurmSettings:
    return SlurmSettings(cluster=ClusterName("mini"), own_user=own_user)


@pytest.fixture
def client(runner: RowsRunner, clock: HandClock) -> SlurmCli:
    return SlurmCli(settings(), runner, clock, clock.pass_by)
