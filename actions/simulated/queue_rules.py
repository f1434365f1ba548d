"""Rules of the job queue: start, end, requeue, COMPLETING, and who gets which nodes.

Called by `controller_rules` and `world`. A job ends only through `leave`, so that one place says why.
"""

from heapq import nsmallest

from actions.simulated.state import Due, DueKind, JobRecord, NodeRecord, State
from config.node_names import NodeName

QUEUE_DEPTH = 100
"""Pending jobs looked at in one pass, as a scheduler's own limit (bf_max_job_test)."""

SHUT = frozenset({"DRAIN", "FAIL", "INVALID_REG", "NOT_RESPONDING", "REBOOT_ISSUED"})
"""Flags that keep new work away."""


def start(state: State, job: JobRecord, nodes: tuple[NodeName, ...]) -> None:
    """Let the job run on these nodes."""
    job.state, job.state_reason, job.nodes = "RUNNING", "", nodes
    job.started_at, job.begin_at = state.now, None
    for name in nodes:
        state.nodes[name].jobs[job.slurm_id] = job.gpus_per_node
    if job.runs_for is not None:
        state.later(
            state.now + job.runs_for,
            Due(kind=DueKind.JOB_END, subject=str(job.slurm_id), stamp=str(job.restarts)),
        )
    state.happened("job started", job.id, ",".join(nodes[:4]))


def leave(state: State, job: JobRecord, outcome: str, why: str) -> None:
    """End the job, or send it back to the queue when `outcome` is PENDING.

    Restarts counts at once, while the job is still COMPLETING (hands 3).
    """
    if outcome == "PENDING":
        job.restarts += 1
        job.begin_at = state.now + state.settings.requeue_delay
        state.later(job.begin_at, Due(kind=DueKind.JOB_BEGIN, subject=str(job.slurm_id)))
    state.happened("job requeued" if outcome == "PENDING" else f"job {outcome}", job.id, why)
    if not job.on_nodes:
        _settle(state, job, outcome)
        return
    job.state, job.next_state, job.completing = "COMPLETING", outcome, frozenset(job.nodes)
    for name in job.nodes:
        host = state.hosts[name]
        if host.slurmd_answers and not host.steps_stuck:
            release(state, job, name)
        elif host.steps_stuck:
            state.later(
                state.now + state.settings.kill_timeout,
                Due(kind=DueKind.KILL_FAILED, subject=name, stamp=str(job.slurm_id)),
            )


def release(state: State, job: JobRecord, name: NodeName) -> None:
    """One node has reported that nothing of the job is left, or was given up as DOWN."""
    if name not in job.completing:
        return
    job.completing -= {name}
    state.nodes[name].jobs.pop(job.slurm_id, None)
    state.unsettled = True
    if not job.completing:
        _settle(state, job, job.next_state)


def release_all(state: State, node: NodeRecord) -> None:
    """A node that answers again has reported its finished jobs."""
    for number in tuple(node.jobs):
        release(state, state.jobs[number], node.name)


def lose_node(state: State, node: NodeRecord, why: str) -> None:
    """The node is DOWN: its jobs are requeued where Slurm may, and end with NODE_FAIL where not."""
    for number in tuple(node.jobs):
        job = state.jobs[number]
        if job.state != "COMPLETING":
            outcome = "PENDING" if job.batch and job.requeue else "NODE_FAIL"
            leave(state, job, outcome, why)
        release(state, job, node.name)


def hold_for_array(job: JobRecord) -> bool:
    """Whether this record stands for several pending tasks, which are shown but never started."""
    return bool(job.array_task) and not job.array_task.isdigit()


def schedule(state: State) -> None:
    """Start what may start, by priority; a job that must wait for room holds back its partition."""
    if not (state.unsettled and state.controller.up and state.controller.settled):
        return
    state.unsettled = False
    pending = [job for job in state.jobs.values() if job.state == "PENDING"]
    blocked: set[str] = set()
    for job in nsmallest(QUEUE_DEPTH, pending, key=lambda job: (-job.priority, job.slurm_id)):
        wait = _not_yet(state, job)
        if wait:
            job.state_reason = wait
        elif job.partition in blocked:
            job.state_reason = "Priority"
        else:
            nodes = _place(state, job)
            if nodes:
                start(state, job, nodes)
            else:
                job.state_reason = "Resources"
                blocked.add(job.partition)


def _settle(state: State, job: JobRecord, outcome: str) -> None:
    """The job has left its last node."""
    job.state, job.next_state, job.completing = outcome, "", frozenset()
    if outcome == "PENDING":
        job.nodes, job.started_at, job.state_reason = (), None, "BeginTime"
    else:
        job.ended_at = state.now
        state.later(
            state.now + state.settings.job_age,
            Due(kind=DueKind.JOB_FORGOTTEN, subject=str(job.slurm_id)),
        )
    state.unsettled = True


def _not_yet(state: State, job: JobRecord) -> str:
    """Slurm's word for why the job may not start whatever is free; empty when it may."""
    if job.held:
        return job.held
    if hold_for_array(job):
        return "JobArrayTaskLimit"
    if job.begin_at is not None and job.begin_at > state.now:
        return "BeginTime"
    if job.after_ok is not None:
        parent = state.jobs.get(job.after_ok)
        if parent is not None and parent.state != "COMPLETED":
            over = parent.ended_at is not None
            return "DependencyNeverSatisfied" if over else "Dependency"
    if state.partitions[job.partition].state != "UP":
        return "PartitionDown"
    if job.reservation and job.reservation not in state.reservations:
        return "ReservationDeleted"
    return ""


def _place(state: State, job: JobRecord) -> tuple[NodeName, ...]:
    """Nodes for the job in the partition's order; empty when there are too few."""
    reserved = {
        name: reservation
        for reservation in state.reservations.values()
        if reservation.active(state.now)
        for name in reservation.nodes
    }
    found = list(job.required_nodes)
    if not all(_fits(state.nodes[name], job) for name in found):
        return ()
    for name in state.partitions[job.partition].nodes:
        if len(found) >= job.node_count:
            break
        holder = reserved[name].name if name in reserved else ""
        if name in found or name in job.excluded_nodes or holder != job.reservation:
            continue
        if _fits(state.nodes[name], job):
            found.append(name)
    return tuple(found) if len(found) >= job.node_count else ()


def _fits(node: NodeRecord, job: JobRecord) -> bool:
    """Whether the node takes new work and has the GPUs; a job without GPUs has a node to itself."""
    if node.down or node.flags & SHUT or 0 in node.jobs.values():
        return False
    if not job.gpus_per_node:
        return not node.jobs
    return node.gpus - sum(node.jobs.values()) >= job.gpus_per_node
