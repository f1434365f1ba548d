"""The contract between the engine and everything that touches the world.

The engine knows actions only by this page. An area of `actions/` implements it; what one area
needs of another is a Protocol in `actions.hands`, which `actions.catalogue` passes in.

Rules that every action keeps (tests hold each action to them):

* `look` changes nothing. `do` makes at most one outside write for one target; a second one may only
  take the first back, where the read-back shows that it must not stand.
* `do` is called only after the intent is committed, and never twice for the same attempt.
* A time-out of the write is `Unknown`, never `Failed`.
* What a read-back shows to be foreign is `Failed` with the command that restores it.
* Text from outside never reaches a shell: argument lists only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from actions.cluster import Overview
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


class WriteUnknown(Exception):
    """A write that may or may not have happened."""


class Rejected(Exception):
    """The controller said no; nothing changed. The message is its own words."""


class UnknownNode(Exception):
    """The controller does not know that node."""


class UnknownJob(Exception):
    """The controller does not know that job (any more)."""
