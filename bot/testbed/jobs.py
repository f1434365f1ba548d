"""Jobs of an ordinary user, among them a small training job whose progress can be read."""

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bot.testbed.commands import write
from bot.testbed.core import READY_SECONDS, Core

_TRAINING = """\
#!/bin/sh
# One task on each node writes: step number, host, restart count, job id. Goes on where it ended.
exec srun --kill-on-bad-exit=1 sh -c '
    step=$(tail -n 1 "{journal}" 2>/dev/null | cut -d " " -f 1)
    step=${{step:-0}}
    while :; do
        step=$((step + 1))
        echo "$step $SLURMD_NODENAME ${{SLURM_RESTART_COUNT:-0}} $SLURM_JOB_ID" >> "{journal}"
        sleep 0.5
    done'
"""
_LINE = re.compile(r"(\d+) (\S+) (\d+) (\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStep:
    """One line of the journal of a training job."""

    number: int
    host: str
    restarts: int
    job: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJob:
    """A running training job and where it writes."""

    id: int
    nodes: tuple[str, ...]
    journal: Path

    def steps(self, host: str = "") -> tuple[TrainingStep, ...]:
        """All steps so far, or those of one host."""
        if not self.journal.exists():
            return ()
        text = self.journal.read_text(encoding="utf-8")
        steps = (
            TrainingStep(number=int(number), host=name, restarts=int(restarts), job=int(job))
            for number, name, restarts, job in _LINE.findall(text)
        )
        return tuple(step for step in steps if host in {"", step.host})


class Jobs(Core):
    """Submitting and following jobs."""

    def submit(self, script: str, *options: str, user: str = "") -> int:
        """Submit a batch script as the job user; the options are sbatch's. The job's id."""
        owner = user or self.options.job_user
        path = self.layout.jobs / f"{uuid.uuid4()}.sh"
        write(path, script, 0o755, owner)
        argv = ["sbatch", "--parsable", "--output=%j.out", *options, str(path)]
        return int(self.run_as(owner, *argv).strip().partition(";")[0])

    def train(self, nodes: Sequence[str], *options: str) -> TrainingJob:
        """A training job that fills these nodes; returns when a step of each node is written."""
        journal = self.layout.jobs / f"{uuid.uuid4()}.journal"
        words = [
            "--job-name=train",
            f"--nodes={len(nodes)}",
            "--ntasks-per-node=1",
            f"--nodelist={','.join(nodes)}",
            f"--gres=gpu:h100:{self.options.gpus}",
            "--exclusive",
            *options,
        ]
        number = self.submit(_TRAINING.format(journal=journal), *words)
        job = TrainingJob(id=number, nodes=tuple(nodes), journal=journal)
        for node in nodes:
            self.wait_for(partial(job.steps, node), f"a step of job {number} on {node}")
        return job

    def wait_for_next_step(
        self, job: TrainingJob, host: str, seconds: float = READY_SECONDS
    ) -> TrainingStep:
        """A step of this host that is written after this call."""
        before = len(job.steps(host))
        self.wait_for(
            lambda: len(job.steps(host)) > before, f"a next step of job {job.id} on {host}", seconds
        )
        return job.steps(host)[before]

    def wait_for_job(self, number: int, state: str, seconds: float = READY_SECONDS) -> None:
        """Until `scontrol` shows the job in this state."""
        self.wait_for(
            lambda: self.job(number)["JobState"] == state, f"job {number} to be {state}", seconds
        )

    def cancel(self, number: int) -> None:
        """End a job; returns when its nodes are free of it."""
        self.run("scancel", str(number))
        self.wait_for(lambda: self.gone(number), f"job {number} to leave its nodes")

    def gone(self, number: int) -> bool:
        """Whether the job has left its nodes."""
        shown = self.run("squeue", "--noheader", "--states=all", "--format=%i %T")
        states = dict(line.split() for line in shown.splitlines())
        ongoing = {"PENDING", "RUNNING", "COMPLETING", "SUSPENDED", "CONFIGURING"}
        return states.get(str(number), "") not in ongoing
