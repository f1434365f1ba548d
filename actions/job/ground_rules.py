"""Whether the ground of a job can be held while it is started again, and what speaks against it. Pure.

Used by `actions.job.ground`. A ground is held when no other job can take the survivors and the spare
between the end of the old run and the start of the new one (hands 3). What is not known speaks
against it: then nothing moves, and a person decides.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from actions.cluster import Job, Node, Partition, Reservation, Snapshot
from actions.job_losses import comes_back, names_node
from config.durations import format_duration
from config.ids import ClusterName
from config.node_names import NodeName

_DAY = timedelta(days=1)
_BACK = timedelta(minutes=10)
"""A requeued job becomes eligible 120 s later (measured), and its old run takes its time to end."""
_NOT_IN_LINE = frozenset(
    "JobHeldUser JobHeldAdmin Dependency DependencyNeverSatisfied BeginTime".split()
)
"""Pending for a reason of its own: such a job takes nothing now."""
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What is judged."""

    cluster: ClusterName
    snapshot: Snapshot
    job: Job
    """Read past any cache."""
    sick: Node
    """The node that it is to leave, likewise."""
    spare: NodeName | None
    spare_why: str
    blind: str
    """Why the job list cannot be believed."""
    may_write: str
    """Why old ranks on the sick node may still write after a requeue."""
    foreign: tuple[Reservation, ...]
    """Reservations that this run did not make."""
    hands_off: tuple[str, ...]
    """Why nobody may touch one of the survivors or the spare."""
    now: datetime

    @property
    def survivors(self) -> tuple[NodeName, ...]:
        """Nodes of the job without the sick one."""
        return tuple(node for node in self.job.nodes if node != self.sick.name)

    @property
    def ground(self) -> tuple[NodeName, ...]:
        """Survivors and spare: where it is to run again."""
        return (*self.survivors, *((self.spare,) if self.spare else ()))


def blockers(scene: Scene) -> tuple[str, ...]:
    """Why the ground cannot be held, each a sentence; empty when it can."""
    if scene.blind:
        return (f"the job list cannot be believed: {scene.blind}",)
    wrong = tuple(_wrong_job(scene))
    if wrong:
        return wrong
    return (
        *((scene.may_write,) if scene.may_write else ()),
        *_named_nodes(scene),
        *_broken_ground(scene),
        *_no_spare(scene),
        *scene.hands_off,
        *_windows(scene),
        *_partitions(scene),
        *_preemptors(scene),
        *_rivals(scene),
    )


def _wrong_job(scene: Scene) -> Iterator[str]:
    """A job that is not, or not any more, what can be started again from here."""
    job, sick = scene.job, scene.sick.name
    name = f"job {job.id}"
    if job.elsewhere(scene.cluster):
        yield f"{name} belongs to cluster {job.federation_origin} of the federation"
    if job.het_job is not None:
        yield f"{name} is a part of het job {job.het_job}: its parts cannot be held one by one"
    if job.array_task and not job.array_task.isdigit():
        yield f"{name} stands for several tasks of an array: name the one that is stuck"
    if not job.batch:
        yield f"{name} is interactive: Slurm has nothing to start again"
    elif not comes_back(job):
        yield f"{name} was submitted with --no-requeue: Slurm refuses to requeue it"
    if job.state == "PENDING" and job.restarts:
        yield f"Slurm has requeued {name} already (Restarts {job.restarts}): it waits in the queue"
    elif job.state != "RUNNING":
        yield f"{name} is {job.state}, not RUNNING"
    elif sick not in job.nodes:
        yield (
            f"{name} does not run on {sick}: it runs on {', '.join(job.nodes)} "
            f"(Restarts {job.restarts})"
        )


def _named_nodes(scene: Scene) -> Iterator[str]:
    """Lists that its owner wrote."""
    job, sick = scene.job, scene.sick.name
    if names_node(job.required_nodes, sick):
        yield f"job {job.id} asks for {sick} by name (-w): without it it can never start"


def _broken_ground(scene: Scene) -> Iterator[str]:
    """Nodes on which Slurm would not start it."""
    for name in scene.ground:
        node = scene.snapshot.nodes.get(name)
        if node is None:
            yield f"{name} is not in the node list of the cluster"
        elif node.out or node.unknown_flags or not node.responding:
            yield f"{name} is {node.state}: Slurm would not start the job there"


def _no_spare(scene: Scene) -> Iterator[str]:
    job = scene.job
    if scene.spare is None:
        yield f"no spare for {scene.sick.name}: {scene.spare_why}"
    elif job.node_count not in {0, len(scene.ground)}:
        yield (
            f"job {job.id} needs {job.node_count} nodes, survivors and spare are "
            f"{len(scene.ground)}"
        )


def _windows(scene: Scene) -> Iterator[str]:
    """Reservations of others on the ground, now or before the restarted job could end."""
    ground = frozenset(scene.ground)
    ends = scene.now + _BACK + (scene.job.time_limit or 365 * _DAY)
    for found in scene.foreign:
        if not ground & frozenset(found.nodes):
            continue
        if found.name == scene.job.reservation:
            yield (
                f"job {scene.job.id} runs in reservation {found.name}, which holds its nodes: the bot "
                "makes none of its own over it"
            )
            continue
        if found.ends_at is not None and found.ends_at <= scene.now:
            continue
        if found.starts_at is None or found.starts_at < ends:
            held = ", ".join(sorted(ground & frozenset(found.nodes))[:_MOST_NAMED])
            since = f" from {_minute(found.starts_at)} on" if found.starts_at else ""
            yield f"reservation {found.name} holds {held}{since}: the job would wait behind it"


def _partitions(scene: Scene) -> Iterator[str]:
    for part in _parts_of(scene.job, scene.snapshot):
        if part.state != "UP":
            yield f"partition {part.name} is {part.state}: nothing starts in it"


def _parts_of(job: Job, snapshot: Snapshot) -> tuple[Partition, ...]:
    names = job.partition.split(",")
    return tuple(part for part in snapshot.partitions if part.name in names)


def _in_line(scene: Scene) -> Iterator[Job]:
    """Pending jobs that could start now if they had nodes."""
    for job in scene.snapshot.jobs:
        waits = job.state == "PENDING" and job.slurm_id != scene.job.slurm_id
        if waits and job.state_reason not in _NOT_IN_LINE:
            yield job


def _preemptors(scene: Scene) -> Iterator[str]:
    """Pending jobs that may take the nodes from the restarted one by preemption."""
    how = scene.snapshot.controller.preempt_type
    if how == "preempt/none":
        return
    if not how:
        yield "whether jobs may preempt each other here was not read"
        return
    found = [job for job in _in_line(scene) if _may_preempt(job, scene, by_qos="qos" in how)]
    for job in found[:_MOST_NAMED]:
        rank = f"QOS {job.qos}" if "qos" in how else f"partition {job.partition}"
        yield f"job {job.id} ({job.user}, {rank}) waits and may preempt job {scene.job.id}"
    if len(found) > _MOST_NAMED:
        yield f"and {len(found) - _MOST_NAMED} more jobs may preempt it"


def _may_preempt(job: Job, scene: Scene, *, by_qos: bool) -> bool:
    """Whether it might; which QOS preempts which is not read, so another one may."""
    ours, ground = _parts_of(scene.job, scene.snapshot), frozenset(scene.ground)
    theirs = [part for part in _parts_of(job, scene.snapshot) if ground & frozenset(part.nodes)]
    if by_qos:
        return bool(theirs) and job.qos != scene.job.qos
    protected = all(part.preempt_mode == "OFF" for part in ours)
    tier = min((part.priority_tier for part in ours), default=0)
    return not protected and any(part.priority_tier > tier for part in theirs)


def _rivals(scene: Scene) -> Iterator[str]:
    """Pending jobs that wait for a limit which the end of this run frees: they may take its place."""
    job = scene.job
    for other in _in_line(scene):
        reason = other.state_reason
        if not (reason.startswith(("QOS", "Assoc")) and ("Max" in reason or "Grp" in reason)):
            continue
        shares = other.user == job.user or (
            "Grp" in reason and (other.account == job.account or other.qos == job.qos)
        )
        if shares:
            yield (
                f"job {other.id} ({other.user}) waits for {reason}: it may take the place of job "
                f"{job.id} in that limit"
            )
            return


# -- where it cannot be held ------------------------------------------------------------------------


def takers(scene: Scene) -> tuple[str, ...]:
    """Whose jobs would take the nodes if the job were requeued without holding them."""
    parts = {part.name for part in _parts_of(scene.job, scene.snapshot)}
    room = len(scene.job.nodes)
    fits = [
        job
        for job in _in_line(scene)
        if parts & set(job.partition.split(",")) and job.node_count <= room
    ]
    fits.sort(key=lambda job: (-job.priority, job.slurm_id))
    lines = [f"job {job.id} ({job.user}, {_nodes(job)}{_for(job)})" for job in fits[:_MOST_NAMED]]
    if len(fits) > _MOST_NAMED:
        lines.append(f"and {len(fits) - _MOST_NAMED} more")
    return tuple(lines)


def _nodes(job: Job) -> str:
    return "1 node" if job.node_count == 1 else f"{job.node_count} nodes"


def _for(job: Job) -> str:
    return f", for up to {format_duration(job.time_limit)}" if job.time_limit else ""


def starts_at(scene: Scene) -> datetime | None:
    """When enough nodes are free by the time limits of what runs; None where that is not known."""
    parts = _parts_of(scene.job, scene.snapshot)
    nodes = {name: scene.snapshot.nodes.get(name) for part in parts for name in part.nodes}
    usable = [
        name
        for name, node in nodes.items()
        if node is not None and not node.out and name != scene.sick.name
    ]
    free = sorted(moment for name in usable if (moment := _free_at(name, scene)) is not None)
    wanted = scene.job.node_count or len(scene.job.nodes)
    return free[wanted - 1] if 0 < wanted <= len(free) else None


def _free_at(name: NodeName, scene: Scene) -> datetime | None:
    """When the last job on this node must have ended; its own run ends with the requeue."""
    ends = [
        job.ends_at for job in scene.snapshot.jobs_on(name) if job.slurm_id != scene.job.slurm_id
    ]
    known: Sequence[datetime] = [moment for moment in ends if moment is not None]
    return None if len(known) < len(ends) else max([scene.now, *known])


def _minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%MZ}"
