"""A run as a value: what the ledger's records amount to. Pure.

`fold` is the only way a run changes; the engine, the projection and `audit rebuild` all call it.
The words for people are made elsewhere (`runbooks.explain`); nothing here reads a clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from config.ids import ActorId, ClusterName, PlanHash, RunId, StepId
from config.json_values import JsonMap
from config.node_names import NodeName
from runbooks.machine import RunState


class StepState(StrEnum):
    """Where one step stands for one target."""

    WAITING = "waiting"
    """Looked, not yet so; `due_at` of the run says when it is looked at again."""
    INTENDED = "intended"
    """The intent is committed; the effect may or may not have happened."""
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """The effect may have happened and cannot be found out: a person decides."""
    UNDONE = "undone"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step for one target, as far as it got."""

    step: StepId
    node: NodeName | None = None
    state: StepState
    action: str = ""
    """`name@version`."""
    attempt: int = 0
    arguments: JsonMap = field(default_factory=dict)
    """As the last intent recorded them."""
    looked: JsonMap = field(default_factory=dict)
    """What `look` saw when the intent was made; recovery compares with it."""
    output: JsonMap = field(default_factory=dict)
    """What expressions see; `{"artefact": digest}` when it was too large for the ledger."""
    why: str = ""
    kind: str = ""
    """FailureKind of a failed step."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    intended_at: datetime | None = None
    """When the open intent was made."""
    blind_since: datetime | None = None
    """Since when looking at it has given no answer."""
    expires_at: datetime | None = None
    """Until then the effect of the open intent may still happen."""
    child: RunId | None = None
    undoing: bool = False
    """The open intent is an undo."""
    done_by: str = ""
    """The action whose effect that undo takes back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRef:
    """The plan of a run; its text is an artefact."""

    hash: PlanHash
    artefact: str
    ask: int
    """1 for the first plan that was asked for, at most 3 (design 5)."""
    gate: str
    """none, confirm, approve or observe: see `runbooks.rails.PlanGate`."""
    approvals_needed: int
    expires_at: datetime
    at: str = ""
    """Key of the `approve:` step at which it was made; empty for the plan before the first effect."""
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """One yes to one plan."""

    actor: ActorId
    hash: PlanHash
    at: datetime
    door: str
    break_glass: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Everything the ledger says of one run."""

    id: RunId
    runbook: str
    version: int
    title: str
    definition: str
    """Artefact digest of everything the run pins."""
    cluster: ClusterName
    parameters: JsonMap
    requested_by: ActorId
    roles: tuple[str, ...]
    """Roles of the requester when the run was asked for."""
    door: str
    reason: str
    requested_at: datetime
    parent: RunId | None = None
    parent_step: str = ""
    state: RunState = RunState.REQUESTED
    why: str = ""
    """Why it is in this state, one sentence."""
    steps: Mapping[str, StepRecord] = field(default_factory=dict)
    """By key: step id, or `step@node` inside a `for_each`."""
    plan: PlanRef | None = None
    asks: int = 0
    """Plans that were made so far."""
    voids: int = 0
    """Plans that the world made void since the last effect."""
    own_plan: bool = False
    """A called run for which its caller's plan no longer holds: only its own counts."""
    approvals: tuple[Approval, ...] = ()
    locks: tuple[str, ...] = ()
    due_at: datetime | None = None
    stop_wanted: str = ""
    """`abort`, `pause` or `takeover`: carried out at the next step boundary."""
    stop_reason: str = ""
    turned_back: bool = False
    """It began to take back what it did: it never goes forward again."""
    ended_at: datetime | None = None
    revision: int = 0
    """Number of records: the revision of its card."""
    last_seq: int = 0
    place: str = ""
    """Where at its door it was asked for: the Slack channel."""

    @property
    def open(self) -> bool:
        """Whether it can still act."""
        return not self.state.final

    @property
    def acted(self) -> bool:
        """Whether it, or a run that it called, may have changed anything."""
        return any(step.attempt or step.child for step in self.steps.values())

    @property
    def intended(self) -> str | None:
        """Key of the step whose intent is open."""
        for key, step in self.steps.items():
            if step.state is StepState.INTENDED:
                return key
        return None

    @property
    def approved(self) -> bool:
        """Whether the present plan may be carried out."""
        plan = self.plan
        if plan is None:
            return False
        if plan.gate == "none":
            return True
        given = [approval for approval in self.approvals if approval.hash == plan.hash]
        if any(approval.break_glass for approval in given):
            return True
        return len({approval.actor for approval in given}) >= max(1, plan.approvals_needed)


def step_key(step: StepId, node: NodeName | None, spread: bool) -> str:
    """Key of a step record: the node is part of it only inside a `for_each`."""
    return f"{step}@{node}" if spread and node else step


def run_nodes(run: Run) -> tuple[NodeName, ...]:
    """Nodes among the parameters of a run (`node`, `nodes`)."""
    found: list[NodeName] = []
    for name in ("node", "nodes"):
        value = run.parameters.get(name)
        if isinstance(value, str):
            found.append(NodeName(value))
        elif isinstance(value, list | tuple):
            found.extend(NodeName(str(entry)) for entry in value)
    return tuple(dict.fromkeys(found))
