"""The canary as the simulated cluster runs it: a job of its own account, inside a reservation.

Called by `write_rules` and `world`. It passes where the node is as it should be.
"""

from typing import NamedTuple

from actions.contract import Rejected
from actions.hands import Canary, CanaryWord
from actions.simulated import queue_rules
from actions.simulated.state import JobRecord, NodeRecord, State
from config.ids import JobId

_WORDS = {
    "PENDING": CanaryWord.PENDING,
    "RUNNING": CanaryWord.RUNNING,
    "COMPLETING": CanaryWord.RUNNING,
    "COMPLETED": CanaryWord.PASSED,
}
_PASSED = "canary: all GPUs answer"
_FAILED = "canary: a GPU does not answer"


class Wish(NamedTuple):
    """What sbatch is told."""

    name: str
    reservation: str
    user: str


def submit(state: State, node: NodeRecord, wish: Wish) -> None:
    """sbatch for exactly this node. Raises Rejected."""
    found = state.reservations.get(wish.reservation)
    if found is None:
        raise Rejected("Batch job submission failed: Requested reservation is invalid")
    if wish.user not in found.users:
        raise Rejected("Batch job submission failed: Access denied to requested reservation")
    number = max(state.jobs, default=0) + 1
    host = state.hosts[node.name]
    broken = bool(host.fails_canary) or host.gpus_present < node.gpus
    state.jobs[number] = JobRecord(
        id=JobId(str(number)),
        slurm_id=number,
        name=wish.name,
        user=wish.user,
        partition=next(iter(sorted(node.partitions)), next(iter(state.partitions))),
        required_nodes=(node.name,),
        gpus_per_node=node.gpus,
        shared=False,
        requeue=False,
        reservation=wish.reservation,
        submitted_at=state.now,
        runs_for=state.settings.canary_takes,
        ends_as="FAILED" if broken else "COMPLETED",
    )
    state.unsettled = True


def end(state: State, name: str) -> None:
    """scancel; nothing happens to one that has ended, or that never was."""
    job = _newest(state, name)
    if job is not None and job.ended_at is None and job.state != "COMPLETING":
        queue_rules.leave(state, job, "CANCELLED", "cancelled by its owner")


def seen(state: State, name: str) -> Canary:
    """How far it has come, as squeue tells it."""
    job = _newest(state, name)
    if job is None:
        return Canary(word=CanaryWord.NONE)
    failed = job.ended_at is not None and job.state != "COMPLETED"
    said = _said(state, job) if job.state == "FAILED" else ""
    return Canary(
        word=_WORDS.get(job.state, CanaryWord.FAILED),
        why=f"{job.state}, exit code {int(failed)}",
        lines=said or (_PASSED if job.state == "COMPLETED" else ""),
    )


def _said(state: State, job: JobRecord) -> str:
    """The last line of one that failed."""
    return next((state.hosts[name].fails_canary for name in job.nodes), "") or _FAILED


def _newest(state: State, name: str) -> JobRecord | None:
    found = [job for job in state.jobs.values() if job.name == name]
    return max(found, key=lambda job: job.slurm_id, default=None)
