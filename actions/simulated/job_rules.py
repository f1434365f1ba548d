"""Rules of slurmctld for writes on jobs: requeue of what is not complete, and updates.

Called by `write_rules` and `slurm_plugs`. The words of refusals are Slurm's own.
"""

from collections.abc import Mapping, Sequence

from actions.contract import Rejected
from actions.simulated import queue_rules, reservation_rules, saving
from actions.simulated.lookups import jobs_addressed, nodes_named
from actions.simulated.state import JobRecord, State

_INCOMPLETE = frozenset({"CONFIGURING", "RUNNING", "STOPPED", "SUSPENDED"})
"""States in which `requeue Incomplete` acts; any other returns success and does nothing."""


def requeue(state: State, names: Sequence[str]) -> None:
    """`scontrol requeue Incomplete`: one after the other, the first refusal ends it."""
    for name in names:
        for job in _with_its_parts(state, jobs_addressed(state, name)):
            if job.state in _INCOMPLETE:
                requeue_one(state, job)


def requeue_one(state: State, job: JobRecord) -> None:
    """One running job goes back to the queue. Raises Rejected for what Slurm does not requeue."""
    if not job.batch:
        raise Rejected(f"Only batch jobs are accepted or processed for job {job.id}")
    if not job.requeue:
        raise Rejected(f"Requested operation is presently disabled for job {job.id}")
    queue_rules.leave(state, job, "PENDING", "requeued by an operator")


def change(state: State, name: str, wanted: Mapping[str, str]) -> None:
    """`scontrol update JobId=…`: all of it or nothing."""
    found = jobs_addressed(state, name)
    excluded = nodes_named(state, wanted.get("excluded_nodes", ""))
    for job in found:
        _may_change(state, job, wanted)
    for job in found:
        saving.remember_job(state, job)
        job.reservation = wanted.get("reservation", job.reservation)
        job.excluded_nodes = excluded if "excluded_nodes" in wanted else job.excluded_nodes
        job.priority = int(wanted.get("priority", job.priority))
    state.unsettled = True


def waits(job: JobRecord) -> bool:
    """Whether Slurm counts it as pending: also while a requeued job is still COMPLETING."""
    return job.state == "PENDING" or (job.state == "COMPLETING" and job.next_state == "PENDING")


def _with_its_parts(state: State, jobs: Sequence[JobRecord]) -> tuple[JobRecord, ...]:
    """A het job goes as a whole, and only by its leader. Raises Rejected."""
    found = {job.slurm_id: job for job in jobs}
    for job in jobs:
        if job.het_job is None:
            continue
        if job.het_job != job.slurm_id:
            raise Rejected(f"Job not heterogeneous job leader for job {job.id}")
        parts = (each for each in state.jobs.values() if each.het_job == job.slurm_id)
        found |= {each.slurm_id: each for each in parts}
    return tuple(found.values())


def _may_change(state: State, job: JobRecord, wanted: Mapping[str, str]) -> None:
    """Whether Slurm takes this update. Raises Rejected."""
    if job.ended_at is not None or (job.state == "COMPLETING" and not waits(job)):
        raise Rejected(f"Job has already finished for job {job.id}")
    if "excluded_nodes" in wanted and not waits(job):
        raise Rejected(f"Job is no longer pending execution for job {job.id}")
    if wanted.get("reservation"):
        reservation_rules.may_use(state, job, wanted["reservation"])
