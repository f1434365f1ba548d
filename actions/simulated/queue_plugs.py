"""Plugs of the queue: what owners, operators and Slurm itself do to jobs.

Called by `plug_verbs` by name. None is an act of the bot.
"""

from datetime import timedelta
from typing import Annotated

from pydantic import SkipValidation

from actions.contract import Rejected
from actions.simulated import job_rules, queue_rules
from actions.simulated.lookups import job_numbered, nodes_named
from actions.simulated.state import Due, DueKind, JobRecord, State
from actions.simulated.training import Training
from config.ids import JobId
from config.job_settings import CheckpointFormat
from config.node_names import expand

Here = Annotated[State, SkipValidation]
"""The state goes through as it is; only what came over the wire is checked."""

_DAY = timedelta(days=1)


def start_job(state: Here, *, job: int, nodes: str) -> None:
    """A pending job starts on exactly these nodes."""
    record = job_numbered(state, job)
    if record.state != "PENDING":
        raise Rejected(f"job {record.id} is {record.state}, not PENDING")
    names = expand(nodes, state.nodes).names
    record.node_count = len(names)
    queue_rules.start(state, record, names)


def end_job(state: Here, *, job: int, outcome: str = "COMPLETED") -> None:
    """The job ends by itself, or its owner cancels it."""
    record = job_numbered(state, job)
    if not state.controller.up:
        state.controller.missed.append(
            Due(kind=DueKind.JOB_END, subject=str(job), stamp=str(record.restarts))
        )
        return
    if record.ended_at is None and record.state != "COMPLETING":
        queue_rules.leave(state, record, outcome, "ended by itself or by its owner")


def requeue_job(state: Here, *, job: int) -> None:
    """`scontrol requeue`."""
    record = job_numbered(state, job)
    if record.batch and record.requeue and record.state == "PENDING":
        raise Rejected("Job is pending execution")
    if record.state in {"PENDING", "RUNNING", "SUSPENDED"}:
        job_rules.requeue_one(state, record)


def suspend_job(state: Here, *, job: int) -> None:
    """`scontrol suspend`."""
    record = job_numbered(state, job)
    if record.state == "RUNNING":
        record.state = "SUSPENDED"


def submit_job(  # noqa: PLR0913  what sbatch is told
    state: Here, *, name: str, user: str, partition: str, shape: str = "1x8", held: str = ""
) -> int:
    """Somebody submits a batch job of `nodes x GPUs per node`; answers its number."""
    if partition not in state.partitions:
        raise Rejected("Invalid partition name specified")
    nodes, _, gpus = shape.partition("x")
    number = max(state.jobs, default=0) + 1
    state.jobs[number] = JobRecord(
        id=JobId(str(number)),
        slurm_id=number,
        name=name,
        user=user,
        partition=partition,
        node_count=int(nodes),
        gpus_per_node=int(gpus or 0),
        held=held,
        submitted_at=state.now,
    )
    state.unsettled = True
    return number


def fill_queue(state: Here, *, partition: str, count: int, user: str = "bo") -> list[int]:
    """Somebody submits so many one-node jobs of a day each; answers their numbers."""
    numbers = [
        submit_job(state, name=f"day-{each}", user=user, partition=partition)
        for each in range(1, count + 1)
    ]
    for number in numbers:
        state.jobs[number].time_limit = state.jobs[number].runs_for = _DAY
    return numbers


def train_job(  # noqa: PLR0913  what a trainer is told
    state: Here,
    *,
    job: int,
    folder: str,
    format: CheckpointFormat = CheckpointFormat.DCP,  # noqa: A002  the word of the settings
    step_takes: timedelta = timedelta(seconds=1),
    checkpoint_every: int = 100,
) -> None:
    """Its owner's script trains from now on, with checkpoints below that folder."""
    job_numbered(state, job)
    state.trainings[job] = Training(
        step_takes=step_takes,
        checkpoint_every=checkpoint_every,
        save_takes=5 * step_takes,
        format=format,
        folder=folder,
    )


def require_nodes(state: Here, *, job: int, nodes: str) -> None:
    """Its owner says `-w`."""
    job_numbered(state, job).required_nodes = nodes_named(state, nodes)


def set_priority(state: Here, *, job: int, priority: int) -> None:
    """An operator sets its priority."""
    job_rules.change(state, str(job), {"priority": str(priority)})


def hold_job(state: Here, *, job: int) -> None:
    """An operator holds it."""
    job_numbered(state, job).held = "JobHeldAdmin"


def release_job(state: Here, *, job: int) -> None:
    """An operator lets it go: the priority that somebody had set is gone (measured)."""
    record = job_numbered(state, job)
    record.held, record.priority, state.unsettled = "", record.own_priority, True
