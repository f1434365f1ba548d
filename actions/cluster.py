"""What a workload manager says about its cluster, as plain values, whichever manager it is.

Made by the back ends (`actions.slurm`, `actions.simulated`), read by every decider. No I/O here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from actions.remote_values import BootId
from config.ids import ClusterName, JobId
from config.node_names import NodeName


class NodeBase(StrEnum):
    """The base state, the word before the flags (`IDLE+DRAIN` has base IDLE)."""

    IDLE = "IDLE"
    ALLOCATED = "ALLOCATED"
    MIXED = "MIXED"
    DOWN = "DOWN"
    UNKNOWN = "UNKNOWN"
    FUTURE = "FUTURE"
    ERROR = "ERROR"
    OTHER = "OTHER"
    """A word this version does not know; nothing acts on such a node."""


KNOWN_FLAGS = frozenset(
    "CLOUD COMPLETING DRAIN DYNAMIC_FUTURE DYNAMIC_NORM EXTERNAL FAIL INVALID_REG MAINTENANCE "
    "NOT_RESPONDING PLANNED POWERED_DOWN POWERING_DOWN POWERING_UP POWER_DOWN POWER_DRAIN POWER_UP "
    "REBOOT_CANCELED REBOOT_ISSUED REBOOT_REQUESTED RESERVED BLOCKED UNDRAIN RESUME POWERED_UP".split()
)
"""Node flags of Slurm 22.05 to 26.05 (slurm_protocol_defs.c); another one means: do not act."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node as the controller sees it."""

    name: NodeName
    base: NodeBase
    flags: frozenset[str]
    reason: str = ""
    """Free text, from anybody; never trusted, never the proof of ownership."""
    reason_by: str = ""
    """User name the controller gives for the Reason, where the release tells it."""
    reason_at: datetime | None = None
    boot_time: datetime | None = None
    slurmd_started_at: datetime | None = None
    partitions: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    gres: str = ""
    """As configured, for example `gpu:h100:8`."""
    gpus: int = 0
    """GPUs configured, summed over types."""
    gpus_used: int | None = None
    """None where the release does not tell it."""
    cpus: int = 0
    cpus_allocated: int = 0
    memory_mib: int = 0
    tres_allocated: str = ""
    address: str = ""
    version: str = ""

    @property
    def unknown_flags(self) -> frozenset[str]:
        """Flags this version does not know: such a node is not acted on."""
        return self.flags - KNOWN_FLAGS

    @property
    def state(self) -> str:
        """`BASE+FLAG+FLAG`, flags in alphabetical order."""
        return "+".join([self.base.value, *sorted(self.flags)])

    @property
    def draining(self) -> bool:
        """Whether no new work may start on it."""
        return "DRAIN" in self.flags

    @property
    def responding(self) -> bool:
        """Whether slurmd answered the controller last time."""
        return "NOT_RESPONDING" not in self.flags

    @property
    def busy(self) -> bool:
        """Whether the controller says that work is on it, whatever job list we were shown."""
        return (
            self.base in {NodeBase.ALLOCATED, NodeBase.MIXED}
            or "COMPLETING" in self.flags
            or self.cpus_allocated > 0
            or bool(self.tres_allocated)
        )

    @property
    def out(self) -> bool:
        """Whether the node is unavailable, whoever took it out (design: one budget per pool)."""
        return self.base in {
            NodeBase.DOWN,
            NodeBase.UNKNOWN,
            NodeBase.ERROR,
            NodeBase.OTHER,
        } or bool(
            self.flags
            & {
                "DRAIN",
                "FAIL",
                "INVALID_REG",
                "MAINTENANCE",
                "NOT_RESPONDING",
                "REBOOT_ISSUED",
                "POWERED_DOWN",
                "POWERING_DOWN",
            }
        )


WITHOUT_NODES = frozenset(
    "PENDING COMPLETED CANCELLED FAILED TIMEOUT NODE_FAIL PREEMPTED BOOT_FAIL DEADLINE OUT_OF_MEMORY "
    "REQUEUED REQUEUE_FED REQUEUE_HOLD SPECIAL_EXIT REVOKED RESV_DEL_HOLD LAUNCH_FAILED "
    "RECONFIG_FAIL".split()
)
"""Job states in which no work is on the listed nodes any more, or not yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job, array task or het component."""

    id: JobId
    """As people name it: `12`, `12_3`, `12+1`; pending array tasks that share a record: `12_[4-9]`."""
    slurm_id: int
    """The controller's own number, unique also for array tasks."""
    name: str
    """User-written; may hold anything."""
    user: str
    account: str = ""
    state: str
    """The base word: RUNNING, PENDING, SUSPENDED, COMPLETING, …"""
    state_flags: frozenset[str] = frozenset()
    state_reason: str = ""
    partition: str = ""
    nodes: tuple[NodeName, ...] = ()
    required_nodes: str = ""
    excluded_nodes: str = ""
    node_count: int = 0
    gpus: int = 0
    batch: bool = True
    requeue: bool = True
    restarts: int = 0
    priority: int = 0
    qos: str = ""
    reservation: str = ""
    dependency: str = ""
    comment: str = ""
    """User-written."""
    submitted_at: datetime | None = None
    started_at: datetime | None = None
    ends_at: datetime | None = None
    time_limit: timedelta | None = None
    array_job: int | None = None
    array_task: str = ""
    het_job: int | None = None
    federation_origin: str = ""
    """Cluster of the federation to which it was submitted; empty outside a federation."""
    federation_siblings: tuple[str, ...] = ()
    """Clusters on which it may start or has copies."""
    batch_host: str = ""
    """Node of its batch script; empty where it has none or the release does not tell."""
    eligible_at: datetime | None = None
    """BeginTime: before it the job cannot start (a requeue puts it 120 s ahead, measured)."""
    extra: str = ""
    """`--extra`, user-written."""
    work_dir: str = ""
    stdout: str = ""
    """Path of its output, with Slurm's patterns filled in where the release does it."""
    features: str = ""
    """Constraint, as written."""
    shared: bool = True
    """Whether other jobs may be on its nodes; False for `--exclusive`."""

    def elsewhere(self, cluster: ClusterName) -> bool:
        """Whether it belongs to another cluster of a federation: such a job is not acted on."""
        return self.federation_origin not in {"", cluster}

    @property
    def holds_nodes(self) -> bool:
        """Whether work of the job may be on its nodes now; a word that is not known counts as so."""
        return bool(self.nodes) and self.state not in WITHOUT_NODES


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition."""

    name: str
    state: str
    """UP, DOWN, DRAIN or INACTIVE."""
    nodes: tuple[NodeName, ...]
    default: bool = False
    hidden: bool = False
    total_nodes: int = 0
    priority_tier: int = 1
    """Of two partitions on one node the higher tier goes first, and may preempt."""
    preempt_mode: str = ""
    """As the release writes it: OFF, REQUEUE, CANCEL, SUSPEND, ...; empty where it was not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """One reservation."""

    name: str
    nodes: tuple[NodeName, ...]
    starts_at: datetime | None
    ends_at: datetime | None
    flags: frozenset[str] = frozenset()
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    active: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationWish:
    """A reservation that is to be made: exactly these nodes, for one user, with a short end."""

    name: str
    """From our own texts: letters, digits, `-` and `_`."""
    nodes: tuple[NodeName, ...]
    user: str
    length: timedelta
    """From now; whole minutes, as Slurm counts them."""
    flags: frozenset[str] = frozenset({"IGNORE_JOBS"})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobChange:
    """One update of one job; None leaves a field as it is, the empty text clears it."""

    reservation: str | None = None
    excluded_nodes: str | None = None
    """The whole list: an update replaces it (measured, hands 3)."""
    priority: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """What the controller says of itself; all from one answer."""

    cluster: ClusterName
    version: str
    booted_at: datetime | None
    """Start of this slurmctld, or its take-over where that was later: it forgets the last seconds when
    it is killed, and knows no node at first (hands 1)."""
    slurmd_timeout: timedelta
    return_to_service: int
    slurm_user: str = ""
    reboot_program: str = ""
    """Empty or `(null)` where none is configured: then no reboot through Slurm."""
    resume_timeout: timedelta = timedelta(seconds=60)
    """Also the limit of `scontrol reboot` (reference 1.12)."""
    preempt_type: str = ""
    """`preempt/none`, `preempt/qos`, `preempt/partition_prio`; empty where it was not read."""
    in_control: str = ""
    """Host of the slurmctld that answers; empty where the answer does not tell."""
    backup: bool = False
    """Whether that is not the primary one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The whole cluster at one moment."""

    cluster: ClusterName
    taken_at: datetime
    controller: Controller
    nodes: dict[NodeName, Node]
    jobs: tuple[Job, ...]
    partitions: tuple[Partition, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    blind: tuple[str, ...] = field(default=())
    """Why the job list cannot be believed (rights, PrivateData, busy nodes without a visible job);
    empty when it can. Nothing that may end a job acts on a blind snapshot (hands 1)."""

    def jobs_on(self, node: NodeName) -> tuple[Job, ...]:
        """Jobs whose work may be on this node."""
        return tuple(job for job in self.jobs if job.holds_nodes and node in job.nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """One snapshot for many looks, with what holds each node sorted once."""

    snapshot: Snapshot
    jobs: Mapping[NodeName, tuple[Job, ...]]
    """As `Snapshot.jobs_on` tells them; nodes without any are left out."""
    reservations: Mapping[NodeName, tuple[Reservation, ...]]
    """Those that name the node; nodes without any are left out."""
    targets: tuple[NodeName, ...] = ()
    """The nodes of the looks: what is asked of one host is asked of all of them at once."""
    boots: dict[NodeName, BootId] = field(default_factory=dict)
    """Put in by the first look that asks the hosts, for all that follow."""

    @classmethod
    def of(cls, snapshot: Snapshot, targets: tuple[NodeName, ...] = ()) -> "Overview":
        """Sort it."""
        jobs: dict[NodeName, list[Job]] = {}
        for job in snapshot.jobs:
            for node in dict.fromkeys(job.nodes if job.holds_nodes else ()):
                jobs.setdefault(node, []).append(job)
        reservations: dict[NodeName, list[Reservation]] = {}
        for reservation in snapshot.reservations:
            for node in dict.fromkeys(reservation.nodes):
                reservations.setdefault(node, []).append(reservation)
        return cls(
            snapshot=snapshot,
            jobs={node: tuple(found) for node, found in jobs.items()},
            reservations={node: tuple(found) for node, found in reservations.items()},
            targets=targets,
        )


def drained(node: Node, jobs: tuple[Job, ...]) -> bool:
    """The strict predicate of hands 2: DRAIN, base IDLE or DOWN, not COMPLETING, no job of any state."""
    return (
        node.draining
        and node.base in {NodeBase.IDLE, NodeBase.DOWN}
        and not node.busy
        and not any(job.holds_nodes and node.name in job.nodes for job in jobs)
    )
