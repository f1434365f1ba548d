"""Rules of training jobs: steps, checkpoints, restarts, and ranks that outlive their job.

Called by `world` after everything that changes, by `queue_rules` and `host_rules`. Progress is counted
in whole microseconds, so that a jump of time gives the same steps and files as many small ones.
"""

from datetime import timedelta

from actions.simulated.machines import Host
from actions.simulated.state import JobRecord, State
from actions.simulated.training import KEPT, Checkpoint, Running, Training

TWO_WRITERS = "two writers"
"""Word of the history for it; noted once for each rank."""


def move(state: State) -> None:
    """Bring every training to now, and see who writes that should not."""
    for number, training in state.trainings.items():
        _count(state, training)
        job = state.jobs.get(number)
        _turn(state, training, job)
        if training.run is not None and job is not None:
            training.run.moves = all(_goes_on(state.hosts[name], job) for name in job.nodes)
    if state.stale_ranks:
        _see_two_writers(state)


def started(state: State, job: JobRecord) -> None:
    """The job has started: its ranks are on these hosts, and others may still be elsewhere."""
    if job.restarts:
        state.stale_ranks |= {
            (name, job.slurm_id)
            for name, host in state.hosts.items()
            if host.ranks.get(job.slurm_id, job.restarts) != job.restarts
        }
    for name in job.nodes:
        if state.hosts[name].powered:
            state.hosts[name].ranks[job.slurm_id] = job.restarts


def killed(host: Host, number: int) -> None:
    """slurmd was told to end the job's ranks here, if it hears of it and they can be ended."""
    if not host.powered:
        host.ranks.clear()
    elif host.slurmd_answers:
        host.doomed |= {number}
        reap(host)


def reap(host: Host) -> None:
    """What was told to end ends, unless it is in D state."""
    if not host.steps_stuck:
        for number in host.doomed:
            host.ranks.pop(number, None)
        host.doomed = frozenset()


def forget_stale(state: State, host: Host) -> None:
    """A slurmd that answers again is told of every job that is not there any more."""
    there = state.nodes[host.name].jobs
    for number in tuple(host.ranks):
        if number not in there:
            killed(host, number)


def _count(state: State, training: Training) -> None:
    run = training.run
    if run is None:
        return
    before, passed = run.counted, state.now - run.seen_at
    run.seen_at = state.now
    if not run.moves or passed <= timedelta(0):
        return
    run.counted += passed
    if run.counted >= training.step_takes:
        training.moved_at = state.now - run.counted % training.step_takes
    every = training.step_takes * training.checkpoint_every
    offset = run.from_step % training.checkpoint_every * training.step_takes
    first = (before + offset) // every + 1
    for count in range(first, (run.counted + offset) // every + 1):
        at = state.now - (run.counted - (count * every - offset))
        step = run.from_step + (count * every - offset) // training.step_takes
        _save(training, Checkpoint(step=step, at=at, done_at=at + training.save_takes))


def _save(training: Training, made: Checkpoint) -> None:
    kept = [each for each in training.checkpoints if each.step != made.step]
    training.checkpoints = [*kept, made][-KEPT:]


def _turn(state: State, training: Training, job: JobRecord | None) -> None:
    """End a run that is over, begin one that has started."""
    now = (job.restarts, job.started_at) if job is not None and job.state == "RUNNING" else None
    run = training.run
    if run is not None and now != (run.restarts, run.started_at):
        training.last_step, training.run = training.step, None
        for each in training.checkpoints:
            each.torn = each.torn or each.done_at > state.now
    if training.run is None and now is not None:
        training.run = Running(
            restarts=now[0],
            started_at=now[1],
            from_step=training.resumes_at(state.now),
            seen_at=state.now,
        )


def _goes_on(host: Host, job: JobRecord) -> bool:
    """Whether the job's rank on this host does its part of a step; one that does not stops all."""
    alive = host.ranks.get(job.slurm_id) == job.restarts
    return host.powered and alive and not host.steps_stuck and not host.ranks_stopped


def _see_two_writers(state: State) -> None:
    """A rank of an earlier start that goes on writing while the job runs again."""
    for name, number in tuple(sorted(state.stale_ranks)):
        host, job = state.hosts[name], state.jobs.get(number)
        old = host.ranks.get(number)
        if job is None or old is None or old == job.restarts:
            state.stale_ranks -= {(name, number)}
        elif job.state == "RUNNING" and not host.steps_stuck and not host.ranks_stopped:
            state.happened(
                TWO_WRITERS,
                job.id,
                f"{name}: a rank of restart {old} writes beside restart {job.restarts}",
            )
            state.stale_ranks -= {(name, number)}
