"""Training jobs as real ones are: ranks coupled by a barrier, checkpoints, one rank that logs.

A job that is requeued goes on from its checkpoint. What its ranks do is in `tools/training_rank.py`.
"""

import os
import re
import signal
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bot.testbed import journal
from bot.testbed.commands import write
from bot.testbed.core import READY_SECONDS
from bot.testbed.jobs import Jobs
from bot.testbed.layout import SCRATCH

_SCRIPT = """\
#!/bin/sh
exec srun --kill-on-bad-exit=1 {tools}/training-rank {folder} {seconds:g} {every} {scratch}
"""
_ITERATION = re.compile(r"^ iteration +(\d+)/", re.MULTILINE)
_TRACKER = "latest_checkpointed_iteration.txt"
_ONE_DAY = "#!/bin/sh\nexec sleep 86400\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast a training job goes."""

    step_seconds: float = 0.2
    checkpoint_every: int = 5
    """Steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoupledJob:
    """A training job and its folder on shared storage."""

    id: int
    nodes: tuple[str, ...]
    folder: Path

    @property
    def log(self) -> Path:
        """What rank 0 says; a restart goes on in it."""
        return self.folder / "train.log"

    def entries(self) -> tuple[journal.Entry, ...]:
        """All that its ranks wrote."""
        path = self.folder / "journal"
        return journal.entries(path.read_text(encoding="ascii")) if path.exists() else ()

    def iteration(self) -> int:
        """The last one in the log; 0 before the first."""
        text = self.log.read_text("utf-8", "replace") if self.log.exists() else ""
        found = _ITERATION.findall(text)
        return int(found[-1]) if found else 0

    def checkpoint(self) -> int:
        """The last one that is whole, as its tracker says; 0 before the first."""
        path = self.folder / _TRACKER
        return int(path.read_text(encoding="ascii")) if path.exists() else 0

    def two_writers(self, since: float = 0.0) -> tuple[journal.TwoWriters, ...]:
        """Every second in which ranks of two starts of this job wrote."""
        return journal.two_writers(self.entries(), since)


class Training(Jobs):
    """Coupled jobs, what can befall one rank of them, and a queue full of other jobs."""

    def train_coupled(
        self, nodes: Sequence[str], *options: str, pace: Pace | None = None
    ) -> CoupledJob:
        """A coupled job that fills these nodes; returns when its first step is in the log."""
        words = [f"--nodes={len(nodes)}", f"--nodelist={','.join(nodes)}", *options]
        job = self.queue_coupled(*words, pace=pace)
        self.wait_for(job.iteration, f"the first step of job {job.id}")
        return CoupledJob(id=job.id, nodes=tuple(nodes), folder=job.folder)

    def queue_coupled(self, *options: str, pace: Pace | None = None) -> CoupledJob:
        """A coupled job on whatever nodes Slurm gives it; returns when it is submitted."""
        chosen = pace or Pace()
        folder = self.layout.jobs / f"run-{uuid.uuid4()}"
        self.run_as(self.options.job_user, "mkdir", str(folder))
        script = _SCRIPT.format(
            tools=self.layout.tools,
            folder=folder,
            seconds=chosen.step_seconds,
            every=chosen.checkpoint_every,
            scratch=SCRATCH,
        )
        words = ["--job-name=train", *self._whole_nodes(), f"--output={folder}/train.log"]
        number = self.submit(script, *words, "--open-mode=append", *options)
        return CoupledJob(id=number, nodes=(), folder=folder)

    def fill_queue(self, count: int, *options: str) -> tuple[int, ...]:
        """One-day jobs of one whole node each; they wait where no node is free."""
        script = self.layout.jobs / f"{uuid.uuid4()}.sh"
        write(script, _ONE_DAY, 0o755, self.options.job_user)
        argv = ["sbatch", "--parsable", "--output=/dev/null", "--job-name=one-day"]
        words = [*argv, "--time=1-00:00:00", *self._whole_nodes(), *options, str(script)]
        return tuple(int(self.run_as(self.options.job_user, *words).strip()) for _ in range(count))

    def cancel_all(self, numbers: Sequence[int]) -> None:
        """End these jobs; returns when their nodes are free of them."""
        self.run("scancel", *(str(number) for number in numbers))
        for number in numbers:
            self.wait_for(partial(self.gone, number), f"job {number} to end")

    def wait_for_iteration(
        self, job: CoupledJob, number: int, seconds: float = READY_SECONDS
    ) -> None:
        """Until the log shows this iteration or a later one."""
        what = f"iteration {number} of job {job.id}"
        self.wait_for(lambda: job.iteration() >= number, what, seconds)

    def stop_rank(self, job: CoupledJob, node: str) -> None:
        """SIGSTOP: it stands still, and so do all others. `wake_rank` is the way back."""
        self._signal_rank(job, node, signal.SIGSTOP)

    def wake_rank(self, job: CoupledJob, node: str) -> None:
        """SIGCONT after `stop_rank`."""
        self._signal_rank(job, node, signal.SIGCONT)

    def spin_rank(self, job: CoupledJob, node: str) -> None:
        """It computes and gets nowhere. `calm_rank` is the way back."""
        self._signal_rank(job, node, signal.SIGUSR1)

    def calm_rank(self, job: CoupledJob, node: str) -> None:
        """The way back from `spin_rank`."""
        self._signal_rank(job, node, signal.SIGUSR2)

    def rank_state(self, job: CoupledJob, node: str) -> str:
        """The kernel's letter of its rank on this node: R, S, D, T; empty where it has none."""
        for process in self._ranks(job, node):
            stat = Path(f"/proc/{process}/stat").read_text("ascii", "replace")
            return stat.rpartition(")")[2].split()[0]
        return ""

    def _signal_rank(self, job: CoupledJob, node: str, number: int) -> None:
        for process in self._ranks(job, node):
            os.kill(process, number)

    def _ranks(self, job: CoupledJob, node: str) -> Iterator[int]:
        """Its ranks on this node, by the numbers that processes have here."""
        rank = str(self.layout.tools / "training-rank").encode()
        where = f"SLURMD_NODENAME={node}".encode()
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if words[1:4] != [b"-IS", rank, str(job.folder).encode()]:  # srun names it too
                    continue
                if where in (entry / "environ").read_bytes().split(b"\0"):
                    yield int(entry.name)
            except (FileNotFoundError, NotADirectoryError, ProcessLookupError, PermissionError):
                continue

    def _whole_nodes(self) -> tuple[str, ...]:
        return ("--ntasks-per-node=1", "--exclusive", f"--gres=gpu:h100:{self.options.gpus}")
