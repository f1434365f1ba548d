"""Rules of the job queue: start, end, requeue, COMPLETING, and who gets which nodes.

Called by `controller_rules` and `world`. A job ends only through `leave`, so that one place says why.
"""

from heapq import nsmallest

from actions.simulated import placing, preemption, training_rules
from actions.simulated.state import Due, DueKind, JobRecord, NodeRecord, State
from config.node_names import NodeName

MOST_PASSES = 10
QUEUE_DEPTH = 100
"""Pending jobs looked at in one pass, as a scheduler's own limit (bf_max_job_test)."""


def start(state: State, job: JobRecord, nodes: tuple[NodeName, ...]) -> None:
    """Let the job run on these nodes."""
    job.state, job.state_reason, job.nodes = "RUNNING", "", nodes
    job.started_at, job.begin_at = state.now, None
    for name in nodes:
        state.nodes[name].jobs[job.slurm_id] = job.gpus_per_node if job.shared else 0
    training_rules.started(state, job)
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
        job.requeued_at, job.begin_at = state.now, state.now + state.settings.requeue_delay
        state.later(job.begin_at, Due(kind=DueKind.JOB_BEGIN, subject=str(job.slurm_id)))
    state.happened("job requeued" if outcome == "PENDING" else f"job {outcome}", job.id, why)
    if not job.on_nodes:
        _settle(state, job, outcome)
        return
    job.state, job.next_state, job.completing = "COMPLETING", outcome, frozenset(job.nodes)
    for name in job.nodes:
        host = state.hosts[name]
        training_rules.killed(host, job.slurm_id)
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
    for _ in range(MOST_PASSES):
        if not (state.unsettled and state.controller.up and state.controller.settled):
            return
        _one_pass(state)


def _one_pass(state: State) -> None:
    """Look at the head of the queue once; what leaves meanwhile makes room for the next pass."""
    state.unsettled = False
    pending = [job for job in state.jobs.values() if job.state == "PENDING"]
    blocked: set[str] = set()
    for job in nsmallest(QUEUE_DEPTH, pending, key=lambda job: _place_in_line(state, job)):
        wait = _not_yet(state, job)
        if wait:
            job.state_reason = wait
        elif job.partition in blocked and not job.reservation:
            job.state_reason = "Priority"
        else:
            _start_or_wait(state, job, blocked)


def _place_in_line(state: State, job: JobRecord) -> tuple[int, int, int]:
    """The partition's tier comes first, then the priority, then the older one."""
    return -state.partitions[job.partition].priority_tier, -job.priority, job.slurm_id


def _start_or_wait(state: State, job: JobRecord, blocked: set[str]) -> None:
    """Start it where there is room, make room where it may, else say why it waits."""
    wait = placing.barred(state, job)
    nodes = () if wait else placing.place(state, job)
    if nodes:
        start(state, job, nodes)
        return
    job.state_reason = wait or "Resources"
    if wait:
        return  # no time and no other job's end lets it start, so nobody waits behind it
    for victim in preemption.victims(state, job):
        preempt(state, victim, job)
    if not job.reservation:
        blocked.add(job.partition)


def preempt(state: State, victim: JobRecord, job: JobRecord) -> None:
    """The victim leaves for a job that may push it away; it starts when the nodes are free."""
    goes_back = preemption.mode(state, victim) == "REQUEUE" and victim.batch and victim.requeue
    leave(state, victim, "PENDING" if goes_back else "PREEMPTED", f"preempted by job {job.id}")


def _settle(state: State, job: JobRecord, outcome: str) -> None:
    """The job has left its last node."""
    job.state, job.next_state, job.completing = outcome, "", frozenset()
    if outcome == "PENDING":
        job.nodes, job.started_at, job.state_reason = (), None, "BeginTime"
        job.submitted_at = job.requeued_at or job.submitted_at
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
    return ""
