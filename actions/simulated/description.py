"""A cluster described in plain values (YAML, JSON, a dict), and the world made from it.

Called by `scenes`, `server`, `runbook test` and tests. A description that does not fit is refused whole,
with every error and its place.
"""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from actions.simulated import controller_rules, queue_rules
from actions.simulated.lookups import nodes_named
from actions.simulated.machines import Host, Unit
from actions.simulated.state import (
    DAWN,
    ControllerRecord,
    Due,
    DueKind,
    JobRecord,
    NodeRecord,
    PartitionRecord,
    Settings,
    State,
)
from actions.simulated.training import Checkpoint, Training
from actions.simulated.world import World
from config.ids import ClusterName, JobId
from config.job_settings import CheckpointFormat
from config.node_names import expand, expand_unchecked

UNITS = (
    *("munge", "slurmd", "sshd", "chronyd"),
    *("nvidia-persistenced", "nvidia-fabricmanager", "containerd"),
)
UP_SINCE = timedelta(days=12)
"""How long the hosts of a described world have been up."""


class _Part(BaseModel):
    """A part of a description: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NodesPart(_Part):
    """Some equal nodes."""

    names: str
    gpus: int = Field(default=8, ge=0, le=64)
    gpu_type: str = "h100"
    cpus: int = Field(default=96, ge=1)
    memory_mib: int = Field(default=2_000_000, ge=1)
    racks: int = Field(default=1, ge=1)
    """They are dealt to so many racks in order, named by a feature `rack1`, `rack2`, …"""
    first_rack: int = Field(default=1, ge=1)


class PartitionPart(_Part):
    """One partition."""

    name: str
    nodes: str
    state: str = "UP"
    default: bool = False
    hidden: bool = False
    priority_tier: int = Field(default=1, ge=0)
    preempt_mode: Literal["OFF", "REQUEUE", "CANCEL"] = "OFF"


class TrainingPart(_Part):
    """What a job trains, and where its checkpoints go."""

    folder: str
    format: CheckpointFormat = CheckpointFormat.DCP
    marker: str = ""
    step_takes: timedelta = Field(default=timedelta(seconds=1), gt=timedelta(0))
    checkpoint_every: int = Field(default=100, ge=1)
    save_takes: timedelta = timedelta(seconds=5)
    steps_done: int = Field(default=0, ge=0)
    """The newest checkpoint at the start, from which it has just gone on; 0 for none."""


class JobPart(_Part):
    """One job: running on `nodes` when they are given, pending otherwise."""

    id: str
    slurm_id: int | None = None
    """The controller's number where it is not the id (array tasks)."""
    name: str
    user: str = "ann"
    account: str = "research"
    partition: str
    nodes: str = ""
    node_count: int = Field(default=1, ge=1)
    gpus_per_node: int = Field(default=8, ge=0)
    batch: bool = True
    requeue: bool = True
    priority: int = 1_000
    comment: str = ""
    held: str = ""
    after_ok: int | None = None
    het_job: int | None = None
    required_nodes: str = ""
    excluded_nodes: str = ""
    qos: str = ""
    reservation: str = ""
    extra: str = ""
    work_dir: str = ""
    stdout: str = ""
    constraint: str = ""
    shared: bool = True
    training: TrainingPart | None = None
    started_ago: timedelta = timedelta(hours=30)
    runs_for: timedelta | None = None
    time_limit: timedelta = timedelta(days=7)


class Description(_Part):
    """A whole cluster."""

    cluster: str = "sim"
    starts_at: datetime = DAWN
    slurmd_timeout: timedelta = timedelta(seconds=300)
    ping_interval: timedelta | None = None
    return_to_service: int = Field(default=1, ge=0, le=2)
    reboot_program: str = "/usr/local/sbin/reboot-node"
    resume_timeout: timedelta = timedelta(seconds=900)
    preempt_type: Literal["preempt/none", "preempt/qos", "preempt/partition_prio"] = "preempt/none"
    qos_preempts: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    boot_takes: timedelta = timedelta(seconds=90)
    canary_takes: timedelta = timedelta(seconds=30)
    nodes: tuple[NodesPart, ...] = Field(min_length=1)
    partitions: tuple[PartitionPart, ...] = ()
    jobs: tuple[JobPart, ...] = ()
    plugs: tuple[Mapping[str, object], ...] = ()
    """Pulled in order at the start; one with `after` (seconds) when so much time has passed."""


def describe(description: Mapping[str, object]) -> World:
    """The world of this description. Raises ValueError (pydantic's, or of a name that is not there)."""
    wanted = Description.model_validate(description)
    if wanted.starts_at.tzinfo is None:
        raise ValueError("starts_at needs a time zone, for example 2026-03-02T02:00:00Z")
    booted = wanted.starts_at - UP_SINCE
    state = State(
        settings=Settings(
            cluster=ClusterName(wanted.cluster),
            slurmd_timeout=wanted.slurmd_timeout,
            ping_interval=wanted.ping_interval,
            return_to_service=wanted.return_to_service,
            reboot_program=wanted.reboot_program,
            resume_timeout=wanted.resume_timeout,
            canary_takes=wanted.canary_takes,
            preempt_type=wanted.preempt_type,
            qos_preempts=wanted.qos_preempts,
        ),
        now=wanted.starts_at,
        controller=ControllerRecord(booted_at=booted),
    )
    for part in wanted.nodes:
        _add_nodes(state, part, booted)
    for host in state.hosts.values():
        host.boot_takes = wanted.boot_takes
    for group in wanted.partitions:
        _add_partition(state, group)
    for job in wanted.jobs:
        _add_job(state, job)
    controller_rules.next_ping(state)
    world = World(state)
    for plug in wanted.plugs:
        _plan_plug(world, plug)
    world.tick(state.now)
    state.controller.unsaved.clear()  # a description is older than slurmctld's last save
    return world


def _add_nodes(state: State, part: NodesPart, booted: datetime) -> None:
    """Hosts with their services, and the controller's records of them."""
    names = expand_unchecked(part.names).names
    for index, name in enumerate(names):
        if name in state.nodes:
            raise ValueError(f"node {name} is described twice")
        state.hosts[name] = Host(
            name=name,
            boot_time=booted,
            gpus_present=part.gpus,
            memory_present=part.memory_mib,
            cpus=part.cpus,
            units={unit: Unit(name=unit, since=booted, main_pid=900) for unit in UNITS},
            gpus_reported=part.gpus,
            memory_reported=part.memory_mib,
            slurmd_started_at=booted,
        )
        state.nodes[name] = NodeRecord(
            name=name,
            gpus=part.gpus,
            gpu_type=part.gpu_type,
            cpus=part.cpus,
            memory_mib=part.memory_mib,
            features=frozenset({f"rack{index * part.racks // len(names) + part.first_rack}"}),
            last_response=state.now,
            boot_time=booted,
            slurmd_started_at=booted,
        )


def _add_partition(state: State, part: PartitionPart) -> None:
    """One partition."""
    names = expand(part.nodes, state.nodes).names
    state.partitions[part.name] = PartitionRecord(
        name=part.name,
        nodes=names,
        listed=names,
        configured=names,
        state=part.state,
        priority_tier=part.priority_tier,
        preempt_mode=part.preempt_mode,
        default=part.default,
        hidden=part.hidden,
    )
    for name in names:
        state.nodes[name].partitions |= {part.name}


def _add_job(state: State, part: JobPart) -> None:
    """One job."""
    if part.partition not in state.partitions:
        raise ValueError(f"job {part.id}: no partition {part.partition!a} is described")
    number = part.slurm_id if part.slurm_id is not None else int(part.id)
    if number in state.jobs:
        raise ValueError(f"job {part.id}: the number {number} is taken")
    nodes = expand(part.nodes, state.nodes).names if part.nodes else ()
    array, _, task = part.id.partition("_")
    record = JobRecord(
        id=JobId(part.id),
        slurm_id=number,
        name=part.name,
        user=part.user,
        account=part.account,
        partition=part.partition,
        node_count=len(nodes) or part.node_count,
        gpus_per_node=part.gpus_per_node,
        required_nodes=nodes_named(state, part.required_nodes),
        excluded_nodes=nodes_named(state, part.excluded_nodes),
        qos=part.qos,
        reservation=part.reservation,
        extra=part.extra,
        work_dir=part.work_dir,
        stdout=part.stdout,
        constraint=part.constraint,
        shared=part.shared,
        batch=part.batch,
        requeue=part.requeue,
        priority=part.priority,
        own_priority=part.priority,
        held=part.held,
        after_ok=part.after_ok,
        comment=part.comment,
        het_job=part.het_job,
        submitted_at=state.now - part.started_ago,
        time_limit=part.time_limit,
        runs_for=part.runs_for,
        array_job=int(array) if task else None,
        array_task=task.strip("[]"),
    )
    state.jobs[number] = record
    if part.training is not None:
        state.trainings[number] = _training(state, part.training)
    if nodes:
        queue_rules.start(state, record, nodes)
        record.started_at = state.now - part.started_ago


def _training(state: State, part: TrainingPart) -> Training:
    """What it trains."""
    done = Checkpoint(step=part.steps_done, at=state.now, done_at=state.now)
    return Training(
        step_takes=part.step_takes,
        checkpoint_every=part.checkpoint_every,
        save_takes=part.save_takes,
        format=part.format,
        folder=part.folder,
        marker=part.marker,
        checkpoints=[done] if part.steps_done else [],
    )


def _plan_plug(world: World, plug: Mapping[str, object]) -> None:
    """Pull a plug now or later."""
    arguments = dict(plug)
    after = arguments.pop("after", None)
    if after is None:
        name = str(arguments.pop("plug", ""))
        world.plug(name, arguments)
        return
    world.plug_named(str(plug.get("plug")))
    if not isinstance(after, int) or after < 0:
        raise ValueError(f"plug {plug.get('plug')!a}: after is a whole number of seconds")
    world.state.later(
        world.state.now + timedelta(seconds=after),
        Due(kind=DueKind.PLUG, subject=json.dumps(arguments)),
    )
