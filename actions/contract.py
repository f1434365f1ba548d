"""The contract between the engine and everything that touches the world.

The engine knows actions only by this page. An area of `actions/` implements it; what one area needs
of another is a Protocol here, which `actions.catalogue` passes in.

Rules that every action keeps (tests hold each action to them):

* `look` changes nothing. `do` makes at most one outside write for one target; a second one may only
  take the first back, where the read-back shows that it must not stand.
* `do` is called only after the intent is committed, and never twice for the same attempt.
* A time-out of the write is `Unknown`, never `Failed`.
* What a read-back shows to be foreign is `Failed` with the command that restores it.
* Text from outside never reaches a shell: argument lists only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from actions.cluster import (
    Job,
    JobChange,
    Node,
    Overview,
    Partition,
    Reservation,
    ReservationWish,
    Snapshot,
)
from actions.remote_values import BootId, CommandResult, HostFacts, Reachability, Service
from config.ids import ClusterName, InstanceId, JobId, RunId, StepId
from config.json_values import JsonMap
from config.node_names import NodeName
from config.permissions import Permission


class ValueType(StrEnum):
    """Declared type of a parameter or an output field."""

    TEXT = "text"
    NUMBER = "number"
    """A whole number."""
    TRUTH = "truth"
    DURATION = "duration"
    """Text such as `90s`, `15m`, `2h`."""
    NODE = "node"
    NODES = "nodes"
    """A list of node names."""
    UNIT = "unit"
    """A systemd unit from the allow-list of the configuration."""
    JOB = "job"
    """A job id as people write it: `12`, `12_3` (array task), `12+1` (part of a het job)."""
    FACTS = "facts"
    """A mapping of further values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One parameter or output field of an action."""

    type: ValueType
    help: str
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionSpec:
    """What is promised about an action before it runs; printed into the docs."""

    name: str
    """`area.verb`, as runbooks write it after `do:`."""
    version: int
    """Contract version; a run stores `name@version` and refuses to go on with another."""
    summary: str
    permission: Permission
    parameters: Mapping[str, Field]
    output: Mapping[str, Field] = field(default_factory=dict)
    looks_only: bool = False
    """Changes nothing: needs no plan, no intent, no approval."""
    observable: bool = True
    """Whether `look` can tell afterwards that the effect happened. If not, an attempt whose
    outcome was lost goes to a person (design 5)."""
    repeatable: bool = False
    """Carries an idempotency key: doing it twice is the same as doing it once."""
    may_end_jobs: bool = False
    persons: int = 0
    """At least so many persons approve each plan that holds it, none of them the requester."""
    takes_node_out: bool = False
    """Counts against the budget of unavailable nodes of the pool."""
    sets_mark: str | None = None
    """Kind of ownership mark that a done effect leaves (`drain`), undone by `clears_mark`."""
    mark_on: str = ""
    """Parameter that names what is marked, such as a reservation; empty: the node."""
    clears_mark: str | None = None
    all_marks: bool = False
    """Its call carries every open mark of ours in the cluster, not those of its own nodes alone."""
    undo: str | None = None
    """Name of the action that takes it back; `return-node` for a drain (hands 2)."""
    time_limit: timedelta = timedelta(seconds=60)
    """Hard limit of the effect: the intent's `expires_at`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """An ownership row of the ledger: this bot put this on that node, in that run."""

    kind: str
    """`drain`, or `reservation`."""
    cluster: ClusterName
    node: NodeName
    """The node; for a reservation its name."""
    run: RunId
    boot_id: str
    text: str
    """What was written into the cluster (the Reason), a hint only: Slurm overwrites it."""
    at: datetime
    """When the write was known to have happened; before that, when it was intended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One action for one target in one run."""

    run: RunId
    step: StepId
    attempt: int
    instance: InstanceId
    cluster: ClusterName
    node: NodeName | None
    arguments: JsonMap
    cause: str
    """Short cause for marks: at most 16 characters, from our own texts."""
    marks: tuple[Mark, ...] = ()
    """Open marks of ours on this node and on those that the argument `nodes` names, and all reservations
    of ours, from the ledger."""
    now: datetime
    seen: Overview | None = None
    """Only in the looks of a plan over many targets: the cluster as it was seen once for all of them.
    Each write is preceded by a look of its own, which has none."""
    intended_at: datetime | None = None
    """Only in the look of a recovery: when the open intent was made."""
    called: RunId | None = None
    """The run of a called runbook that this call belongs to, beneath `run`; None: `run` itself."""

    @property
    def effect_id(self) -> str:
        """Name of the effect in the outside world: instance, run, step, attempt.

        One runbook may be called twice in a run, so the name says which call it was.
        """
        return f"nw-{self.instance}-{self.called or self.run}-{self.step}-{self.attempt}"


class Standing(StrEnum):
    """What `look` answers."""

    OURS = "already_by_us"
    FOREIGN = "already_by_another"
    NOT_SO = "not_so"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLoss:
    """What an action would do to one job."""

    job: JobId
    slurm_id: int
    user: str
    name: str
    gpus: int
    nodes: int
    comes_back: bool
    """Whether Slurm would start it again."""
    lost: bool
    """Whether its work would be lost (not restartable, or from zero)."""
    why: str
    """One sentence for the card."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What the world looks like to one action, right now.

    `boot_id`, `owner`, `state`, `reason` and the two job lists enter the plan's hash (design 5).
    """

    standing: Standing
    why: str
    """One sentence for people: what was seen."""
    boot_id: str = ""
    """`unknown` where the node cannot be asked."""
    owner: str = ""
    """Who holds the node: `us:<run>`, `nobody`, or the foreign writer as far as known."""
    state: str = ""
    reason: str = ""
    jobs_end: tuple[JobLoss, ...] = ()
    facts: JsonMap = field(default_factory=dict)
    """Further readings, stored with the intent and compared at recovery."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The effect is there and was read back (or: the reading succeeded)."""

    output: JsonMap = field(default_factory=dict)
    mark_text: str = ""
    """What was written, if the action sets a mark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Not yet: look again at `until`."""

    until: datetime
    why: str
    seen: JsonMap = field(default_factory=dict)
    """What there was to see meanwhile, for whoever only asks; nothing is decided on it."""


class FailureKind(StrEnum):
    """What may follow a failure."""

    RETRYABLE = "retryable"
    """May be tried again after a fresh look."""
    PERMANENT = "permanent"
    REFUSED = "refused"
    """The world forbids it; nothing was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """It did not happen, and that is known."""

    error: str
    kind: FailureKind
    restore: str = ""
    """Command that puts back what was overwritten, where that happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """It may have happened: time-out, death of a child, an answer that cannot be read."""

    why: str


Outcome = Done | Wait | Failed | Unknown


class Action(Protocol):
    """One verb."""

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        ...

    def look(self, call: Call) -> Observation:
        """See how the world stands to this action; changes nothing. Raises Unreadable."""
        ...

    def do(self, call: Call) -> Outcome:
        """Do it (or read it, if `looks_only`), and read back. Never raises for the world's faults."""
        ...


class Unreadable(Exception):
    """A look that got no answer it could believe; the engine waits and looks again."""


class Refusal(Exception):
    """The bot may not or must not do this here (rights, blindness, protected host)."""


class ClusterHands(Protocol):
    """A workload manager. Implemented by `actions.slurm` and `actions.simulated`.

    Every method raises Unreadable when the controller does not answer in time, answers for another
    cluster, or in a form this version does not know. Writes raise WriteUnknown when they may have
    happened.
    """

    @property
    def name(self) -> ClusterName:
        """The cluster, compared with each answer before a write."""
        ...

    def snapshot(self) -> Snapshot:
        """Nodes, jobs, partitions, reservations; shared by all readers, at most 15 s old (hands 1)."""
        ...

    def fresh_node(self, node: NodeName) -> Node:
        """This node now, past any cache. Raises UnknownNode."""
        ...

    def fresh_jobs(self, node: NodeName) -> tuple[Job, ...]:
        """Jobs on this node now, past any cache; raises Refusal when the list proves to be blind."""
        ...

    def drain(self, node: NodeName, reason: str) -> None:
        """Set DRAIN with this Reason: one update, no read-back."""
        ...

    def resume(self, node: NodeName) -> None:
        """Clear DRAIN: one update, no read-back. Raises Rejected with the controller's words."""
        ...


class NodeChanges(Protocol):
    """Further writes on nodes and partitions; the same object as the ClusterHands, the same errors."""

    def down(self, node: NodeName, reason: str) -> None:
        """Set DOWN with this Reason: ends every job on it, at once. One update, no read-back."""
        ...

    def reboot(self, node: NodeName) -> None:
        """Plain `scontrol reboot`, without ASAP and nextstate: both would lift a drain (hands 2)."""
        ...

    def fresh_partition(self, name: str) -> Partition:
        """This partition now, past any cache. Raises Refusal where there is none of that name."""
        ...

    def set_partition_nodes(self, partition: str, nodes: Sequence[NodeName]) -> None:
        """Write the full list of a partition's nodes: gone after a reconfigure (hands 2)."""
        ...


class JobHands(Protocol):
    """Jobs and reservations, one at a time; the same object as the ClusterHands, the same errors."""

    def fresh_job(self, job: JobId) -> Job:
        """This one job (array task, het part) now, past any cache. Raises UnknownJob."""
        ...

    def fresh_reservations(self) -> tuple[Reservation, ...]:
        """All reservations now, past any cache."""
        ...

    def create_reservation(self, wish: ReservationWish) -> None:
        """Make it, from now on: one write, no read-back."""
        ...

    def set_reservation_nodes(self, name: str, nodes: Sequence[NodeName]) -> None:
        """Give a reservation exactly these nodes: one update, no read-back."""
        ...

    def delete_reservation(self, name: str) -> None:
        """Delete it. Slurm refuses while a job points to it: Rejected with its words."""
        ...

    def requeue(self, jobs: Sequence[JobId]) -> None:
        """`scontrol requeue Incomplete` with these explicit ids: what has ended stays ended (hands 3)."""
        ...

    def change_job(self, job: JobId, change: JobChange) -> None:
        """One update of one job, no read-back."""
        ...


class CanaryWord(StrEnum):
    """How far a canary has come."""

    NONE = "none"
    """Nothing of that name is known (any more)."""
    PENDING = "pending"
    RUNNING = "running"
    PASSED = "passed"
    """It ran on that node and ended with code 0."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A canary as it is seen now."""

    word: CanaryWord
    why: str = ""
    """State and exit code as the workload manager tells them."""
    lines: str = ""
    """The last lines of its output, from outside; empty where they cannot be read."""


class CanaryHands(Protocol):
    """A small job of the site that tries one node, run as the site's unprivileged canary account.

    `effect_id` is carried by the job itself, so that it is found after a crash and not started twice.
    Every method raises Unreadable when there is no answer; `start` and `end` raise WriteUnknown when
    they may have happened, and Rejected with the words of whoever said no.
    """

    def start(self, node: NodeName, reservation: str, effect_id: str) -> None:
        """Submit it for exactly this node, inside this reservation: one write."""
        ...

    def state(self, effect_id: str) -> Canary:
        """How far it has come."""
        ...

    def end(self, effect_id: str) -> None:
        """End it if it has not ended: one write."""
        ...


class WriteUnknown(Exception):
    """A write that may or may not have happened."""


class Rejected(Exception):
    """The controller said no; nothing changed. The message is its own words."""


class UnknownNode(Exception):
    """The controller does not know that node."""


class UnknownJob(Exception):
    """The controller does not know that job (any more)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenReason:
    """A Reason that somebody gave a node, as the accounting remembers it."""

    reason: str
    """Of two writes in one second slurmdbd keeps the last text beside the first writer."""
    by: str
    at: datetime


class ReasonHistory(Protocol):
    """What Reasons a node was given, past the one that it shows now.

    Slurm's node record holds only the last one, so that a text written between our last look and
    our write is seen only here (with slurmdbd: `sacctmgr show event`; and in the simulation).
    """

    def written_since(self, node: NodeName, moment: datetime) -> Sequence[WrittenReason]:
        """Reasons given at `moment` or later, the oldest first. Raises Unreadable."""
        ...


class NodeHands(Protocol):
    """Commands on nodes. Implemented by `actions.remote` and `actions.simulated`."""

    def reach(self, node: NodeName) -> Reachability:
        """Whether the host answers, and how (hands 2)."""
        ...

    def host_facts(self, node: NodeName) -> HostFacts:
        """What the node says of itself. Raises Unreadable when it gives no answer."""
        ...

    def boot_ids(self, nodes: Sequence[NodeName]) -> Mapping[NodeName, BootId]:
        """Which boot each of them is in, fanned out and capped; who gives no answer says why."""
        ...

    def service(self, node: NodeName, unit: str) -> Service:
        """State of one unit; ServiceState.UNKNOWN when the node gives no answer."""
        ...

    def start_service(self, node: NodeName, unit: str, effect_id: str) -> CommandResult:
        """`systemctl start`, under a time limit and a lock on the node."""
        ...

    def restart_service(self, node: NodeName, unit: str, effect_id: str) -> CommandResult:
        """`systemctl restart`, likewise."""
        ...

    def kernel_log(self, node: NodeName, previous_boot: bool) -> CommandResult:
        """The kernel's log of this boot or the one before, capped."""
        ...

    def run(
        self, nodes: Sequence[NodeName], command: Sequence[str], time_limit: timedelta
    ) -> Mapping[NodeName, CommandResult]:
        """One allow-listed read-only command on many nodes, fanned out and capped (design 7)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Something that must wake a person."""

    key: str
    """Stable: the same trouble has the same key; the receiver merges repeats."""
    summary: str
    """One line, at most 200 characters, already redacted."""
    details: Mapping[str, str] = field(default_factory=dict)
    severity: str = "critical"
    resolved: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PageReceipt:
    """What a back end said: accepted is not delivered."""

    backend: str
    accepted: bool
    detail: str
    unknown: bool = False
    """No answer that can be believed: it may have gone out all the same."""


class Pager(Protocol):
    """A chain of back ends. Implemented by `actions.page`."""

    def send(self, page: Page, *, deadline: timedelta) -> tuple[PageReceipt, ...]:
        """Try back ends in order until one accepts; one receipt for each that was tried. Never raises."""
        ...
