"""What exists in the simulated cluster: hosts, nodes, jobs, partitions, reservations, and what is due.

Read and changed by the rules beside it (`queue_rules`, `controller_rules`, `host_rules`) and by `world`.
Plain data that a rule may change in place; it reads no clock and knows no socket.
"""

import heapq
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from actions.hands import WrittenReason
from actions.simulated.machines import Host
from actions.simulated.training import Training
from config.ids import ClusterName, JobId
from config.node_names import NodeName

DAWN = datetime(2026, 3, 2, 2, 0, tzinfo=UTC)
"""Default start of a described world: a Monday night, so that a replay prints the same times."""

HISTORY_KEPT = 100_000
REQUESTED, ISSUED = "REBOOT_REQUESTED", "REBOOT_ISSUED"
REASONS_KEPT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a site writes into slurm.conf, and the few speeds that Slurm does not set."""

    cluster: ClusterName
    version: str = "22.05.8"
    slurmd_timeout: timedelta = timedelta(seconds=300)
    ping_interval: timedelta | None = None
    """How often slurmctld asks each slurmd; a third of SlurmdTimeout where not given, as in Slurm."""
    return_to_service: int = 1
    slurm_user: str = "slurm"
    kill_timeout: timedelta = timedelta(seconds=90)
    """KillWait and UnkillableStepTimeout together: then an unkillable step drains its node."""
    save_interval: timedelta = timedelta(seconds=5)
    """slurmctld saves its state lazily; what is younger is gone when it is killed (hands 1)."""
    requeue_delay: timedelta = timedelta(seconds=120)
    reboot_program: str = "/usr/local/sbin/reboot-node"
    """Empty where slurm.conf has none: slurmctld takes a reboot all the same, and it times out."""
    resume_timeout: timedelta = timedelta(seconds=900)
    """How long a reboot may take; Slurm's own default of 60 s is too short for such hosts."""
    preempt_type: str = "preempt/none"
    qos_preempts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """With preempt/qos: jobs of which QOS a job of this one may push away."""
    canary_takes: timedelta = timedelta(seconds=30)
    settle: timedelta = timedelta(seconds=2)
    """For so long after a start of slurmctld the nodes are UNKNOWN."""
    contact: timedelta = timedelta(seconds=1)
    """How soon a resumed node is asked; until then it reads NOT_RESPONDING, as measured."""
    job_age: timedelta = timedelta(seconds=300)
    """MinJobAge: an ended job stays listed for so long."""

    @property
    def ping_every(self) -> timedelta:
        """Time between two pings of a node."""
        return self.ping_interval or self.slurmd_timeout / 3


@dataclass(slots=True, kw_only=True)
class NodeRecord:
    """What slurmctld holds about a node."""

    name: NodeName
    gpus: int
    gpu_type: str
    cpus: int
    memory_mib: int
    features: frozenset[str]
    partitions: frozenset[str] = frozenset()
    down: bool = False
    flags: frozenset[str] = frozenset()
    reason: str = ""
    reason_by: str = ""
    reason_at: datetime | None = None
    last_response: datetime
    boot_time: datetime | None
    """None for a moment after RESUME, until the node has answered."""
    slurmd_started_at: datetime
    rebooting_since: str = ""
    """When slurmctld last issued a reboot: the stamp of its limit."""
    written: deque[WrittenReason] = field(default_factory=lambda: deque(maxlen=REASONS_KEPT))
    """Every Reason it was given, as the accounting remembers: also what slurmctld has forgotten."""
    jobs: dict[int, int] = field(default_factory=dict)
    """Job number to GPUs held here, completing jobs included."""

    def flag(self, *names: str) -> None:
        """Set these flags."""
        self.flags |= frozenset(names)

    def unflag(self, *names: str) -> None:
        """Clear these flags."""
        self.flags -= frozenset(names)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedNode:
    """The part of a node record that an update changes and that an unsaved update loses."""

    at: datetime
    node: NodeName
    down: bool
    flags: frozenset[str]
    reason: str
    reason_by: str
    reason_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedJob:
    """The same of a job."""

    at: datetime
    slurm_id: int
    reservation: str
    excluded_nodes: tuple[NodeName, ...]
    priority: int
    held: str


@dataclass(slots=True, kw_only=True)
class JobRecord:
    """One job, array task, or shared record of pending array tasks."""

    id: JobId
    slurm_id: int
    name: str
    user: str
    partition: str
    account: str = ""
    node_count: int = 1
    gpus_per_node: int = 0
    state: str = "PENDING"
    state_reason: str = ""
    nodes: tuple[NodeName, ...] = ()
    required_nodes: tuple[NodeName, ...] = ()
    excluded_nodes: tuple[NodeName, ...] = ()
    batch: bool = True
    requeue: bool = True
    restarts: int = 0
    priority: int = 1_000
    own_priority: int = 1_000
    """As computed for it: a release of a held job goes back to this one (measured)."""
    qos: str = ""
    reservation: str = ""
    after_ok: int | None = None
    comment: str = ""
    extra: str = ""
    work_dir: str = ""
    stdout: str = ""
    constraint: str = ""
    """Features that its nodes must have, joined by `&`."""
    shared: bool = True
    submitted_at: datetime
    begin_at: datetime | None = None
    requeued_at: datetime | None = None
    """Becomes its time of submission (measured)."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    time_limit: timedelta = timedelta(days=7)
    runs_for: timedelta | None = None
    ends_as: str = "COMPLETED"
    """How it ends when it has run that long."""
    held: str = ""
    """Reason word of a hold, for example JobHeldUser; empty when it may start."""
    array_job: int | None = None
    array_task: str = ""
    het_job: int | None = None
    completing: frozenset[NodeName] = frozenset()
    """Nodes that have not reported the end of the job's processes."""
    next_state: str = ""
    """What it becomes when the last of them has."""

    @property
    def on_nodes(self) -> bool:
        """Whether it holds nodes now."""
        return self.state in {"RUNNING", "SUSPENDED", "COMPLETING"}


@dataclass(slots=True, kw_only=True)
class PartitionRecord:
    """One partition."""

    name: str
    nodes: tuple[NodeName, ...]
    listed: tuple[NodeName, ...]
    """As slurmctld shows the list, which a half-applied edit does not change."""
    configured: tuple[NodeName, ...]
    """Its nodes in slurm.conf, which come back at each reconfigure and start of slurmctld."""
    state: str = "UP"
    default: bool = False
    hidden: bool = False
    priority_tier: int = 1
    preempt_mode: str = "OFF"
    """What becomes of its jobs that are pushed away: OFF, REQUEUE or CANCEL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationRecord:
    """One reservation."""

    name: str
    nodes: tuple[NodeName, ...]
    starts_at: datetime
    ends_at: datetime
    flags: frozenset[str] = frozenset()
    users: tuple[str, ...] = ()

    def active(self, now: datetime) -> bool:
        """Whether it holds its nodes at this time."""
        return self.starts_at <= now < self.ends_at


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedReservation:
    """What an update of a reservation replaces, None where there was none."""

    at: datetime
    name: str
    before: ReservationRecord | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One change that somebody made from outside, in the order in which the world changed."""

    number: int
    at: datetime
    verb: str
    arguments: dict[str, str]
    caller: str
    pid: int
    """Process that asked, 0 where it is not known; an effect can outlive it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """One thing that followed by itself: a job killed, a node set DOWN."""

    at: datetime
    what: str
    subject: str
    why: str


class DueKind(StrEnum):
    """What can be due."""

    PING = "ping"
    """slurmctld asks every slurmd; `stamp` is the controller's start."""
    CONTACT = "contact"
    """slurmctld asks one node."""
    DEADLINE = "deadline"
    """SlurmdTimeout of a node; void when it has answered since."""
    JOB_END = "job_end"
    JOB_BEGIN = "job_begin"
    JOB_FORGOTTEN = "job_forgotten"
    KILL_FAILED = "kill_failed"
    BOOTED = "booted"
    REBOOT_LIMIT = "reboot_limit"
    """ResumeTimeout of a reboot that slurmctld asked for; void when the node has registered."""
    CONTROLLER_BACK = "controller_back"
    SETTLED = "settled"
    RESERVATION_EDGE = "reservation_edge"
    LATE_WRITE = "late_write"
    PLUG = "plug"
    """A plug that a description pulls after some time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """Something that will happen unless it has become void."""

    kind: DueKind
    subject: str = ""
    stamp: str = ""
    """Value that must still hold when it is due; compared by the handler."""


@dataclass(slots=True, kw_only=True)
class ControllerRecord:
    """slurmctld itself."""

    up: bool = True
    booted_at: datetime
    settled: bool = True
    hides_jobs: bool = False
    """PrivateData=jobs with too few rights: the list is empty and there is no error (hands 1)."""
    answer_delay: timedelta = timedelta(0)
    unsaved: deque[SavedNode | SavedJob | SavedReservation] = field(default_factory=deque)
    """States before each update that may not be on disk yet, oldest first."""
    missed: list[Due] = field(default_factory=list)
    """What fell due while it was down."""


@dataclass(slots=True, kw_only=True)
class State:
    """The whole simulated cluster."""

    settings: Settings
    now: datetime
    controller: ControllerRecord
    hosts: dict[NodeName, Host] = field(default_factory=dict)
    nodes: dict[NodeName, NodeRecord] = field(default_factory=dict)
    jobs: dict[int, JobRecord] = field(default_factory=dict)
    partitions: dict[str, PartitionRecord] = field(default_factory=dict)
    reservations: dict[str, ReservationRecord] = field(default_factory=dict)
    trainings: dict[int, Training] = field(default_factory=dict)
    """What the jobs of these numbers train."""
    stale_ranks: frozenset[tuple[NodeName, int]] = frozenset()
    """Hosts and jobs where a rank of an earlier start was left when the job started again."""
    effects: list[Effect] = field(default_factory=list)
    history: deque[Happening] = field(default_factory=lambda: deque(maxlen=HISTORY_KEPT))
    due: list[tuple[datetime, int, Due]] = field(default_factory=list)
    numbered: int = 0
    unsettled: bool = True
    """Whether something changed that may let a pending job start."""

    def later(self, at: datetime, due: Due) -> None:
        """Put something on the list of what will happen; equal times keep their order."""
        self.numbered += 1
        heapq.heappush(self.due, (at, self.numbered, due))

    def happened(self, what: str, subject: str, why: str) -> None:
        """Note a consequence."""
        self.history.append(Happening(at=self.now, what=what, subject=subject, why=why))
