"""A run as a value: the fold of its ledger records. Pure.

`fold` is the only way a run changes; the engine, the projection and `audit rebuild` all call it.
The words for people are made elsewhere (`runbooks.explain`); nothing here reads a clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from audit_log.records import EventKind, Record
from config.clock import from_microseconds
from config.ids import ActorId, ClusterName, PlanHash, RunId, StepId
from config.json_values import JsonMap
from config.node_names import NodeName
from runbooks.machine import Move, RunState, next_state


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
    expires_at: datetime | None = None
    """Until then the effect of the open intent may still happen."""
    child: RunId | None = None
    undoing: bool = False
    """The open intent is an undo."""


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
    approvals: tuple[Approval, ...] = ()
    locks: tuple[str, ...] = ()
    due_at: datetime | None = None
    stop_wanted: str = ""
    """`abort`, `pause` or `takeover`: carried out at the next step boundary."""
    stop_reason: str = ""
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


def requested(record: Record) -> Run:
    """The run that a `run.requested` record begins."""
    data = _data(record)
    run = record.event.run
    cluster = record.event.cluster
    if run is None or cluster is None:
        raise ValueError(f"record {record.seq}: run.requested without run or cluster")
    return Run(
        id=run,
        runbook=data["runbook"],
        version=data["version"],
        title=data["title"],
        definition=data["definition"],
        cluster=cluster,
        parameters=data["parameters"],
        requested_by=record.event.actor,
        roles=tuple(data["roles"]),
        door=data["door"],
        reason=data["reason"],
        requested_at=record.at,
        parent=RunId(data["parent"]) if data.get("parent") else None,
        parent_step=data.get("parent_step", ""),
        place=data.get("place", ""),
        due_at=record.at,
        revision=1,
        last_seq=record.seq,
    )


def fold(run: Run, record: Record) -> Run:
    """The run after this record. Raises IllegalTransition for a record that cannot follow."""
    change = _FOLDS.get(record.event.kind)
    run = replace(run, revision=run.revision + 1, last_seq=record.seq)
    return run if change is None else change(run, record)


def _data(record: Record) -> dict[str, Any]:
    """The record's data as read from JSON; its shape was fixed when it was written."""
    return dict(record.event.data)


def _state(run: Run, record: Record) -> Run:
    data = _data(record)
    move = Move(data["move"])
    why = data.get("why", "")
    if move.asks_to_stop:
        return replace(run, stop_wanted=move.stop, stop_reason=why, due_at=record.at)
    state = next_state(run.state, move)
    due = from_microseconds(data["due_us"]) if data.get("due_us") is not None else None
    if due is None and state.acts and not state.final:
        due = record.at
    return replace(
        run,
        state=state,
        why=why,
        due_at=None if state.final else due,
        ended_at=record.at if state.final else None,
        locks=() if state.final else run.locks,
        stop_wanted="",
        stop_reason="",
    )


def _plan_made(run: Run, record: Record) -> Run:
    data = _data(record)
    plan = PlanRef(
        hash=PlanHash(data["hash"]),
        artefact=data["artefact"],
        ask=data["ask"],
        gate=data["gate"],
        approvals_needed=data["approvals_needed"],
        expires_at=from_microseconds(data["expires_us"]),
        at=data.get("at", ""),
        summary=data.get("summary", ""),
    )
    return replace(run, plan=plan, asks=data["ask"], approvals=(), due_at=record.at)


def _plan_voided(run: Run, record: Record) -> Run:
    return replace(run, plan=None, approvals=(), why=_data(record)["why"], due_at=record.at)


def _approval(run: Run, record: Record) -> Run:
    data = _data(record)
    approval = Approval(
        actor=record.event.actor,
        hash=PlanHash(data["hash"]),
        at=record.at,
        door=data["door"],
        break_glass=record.event.kind is EventKind.BREAK_GLASS,
        reason=data.get("reason", ""),
    )
    return replace(run, approvals=(*run.approvals, approval), due_at=record.at)


def _locks(run: Run, record: Record) -> Run:
    return replace(run, locks=tuple(_data(record)["locks"]))


def _step(run: Run, record: Record, step: StepRecord) -> Run:
    """Any news of a step also wakes a waiting run: no record of its own is needed for that."""
    state = next_state(run.state, Move.WAKE) if run.state is RunState.WAITING else run.state
    steps = {**run.steps, _data(record)["key"]: step}
    return replace(run, state=state, steps=steps, due_at=record.at)


def _until(run: Run, due: datetime | None) -> Run:
    """The run, looked at again at `due`; an undoing run waits in its own state."""
    state = next_state(run.state, Move.WAIT) if run.state is RunState.RUNNING else run.state
    return replace(run, state=state, due_at=due)


def _begun(run: Run, record: Record) -> StepRecord:
    """The step's record so far, or a fresh one."""
    data = _data(record)
    before = run.steps.get(data["key"])
    if before is not None:
        return before
    step = record.event.step
    if step is None:
        raise ValueError(f"record {record.seq}: {record.event.kind} without step")
    return StepRecord(
        step=step, node=record.event.node, state=StepState.WAITING, started_at=record.at
    )


def _step_read(run: Run, record: Record) -> Run:
    data = _data(record)
    state = StepState.FAILED if data.get("error") else StepState.DONE
    step = replace(
        _begun(run, record),
        state=state,
        action=data.get("action", ""),
        output=data.get("output", {}),
        why=data.get("error", data.get("why", "")),
        kind=data.get("kind", ""),
        ended_at=record.at,
    )
    return _step(run, record, step)


def _step_skipped(run: Run, record: Record) -> Run:
    step = replace(
        _begun(run, record),
        state=StepState.SKIPPED,
        why=_data(record)["why"],
        ended_at=record.at,
    )
    return _step(run, record, step)


def _step_waits(run: Run, record: Record) -> Run:
    data = _data(record)
    begun = _begun(run, record)
    step = replace(begun, state=StepState.WAITING, why=data["why"])
    return replace(
        _until(_step(run, record, step), from_microseconds(data["until_us"])), why=data["why"]
    )


def _step_intended(run: Run, record: Record) -> Run:
    data = _data(record)
    step = replace(
        _begun(run, record),
        state=StepState.INTENDED,
        action=data["action"],
        attempt=data["attempt"],
        arguments=data["arguments"],
        looked=data["looked"],
        why="",
        kind="",
        expires_at=from_microseconds(data["expires_us"]),
        ended_at=None,
        undoing=data.get("undoing", False),
    )
    return _step(run, record, step)


_OUTCOMES = {
    "done": StepState.DONE,
    "undone": StepState.UNDONE,
    "failed": StepState.FAILED,
    "again": StepState.WAITING,
    "unknown": StepState.UNKNOWN,
}


def _step_finished(run: Run, record: Record) -> Run:
    data = _data(record)
    before = run.steps[data["key"]]
    state = _OUTCOMES[data["outcome"]]
    if before.undoing and state in {StepState.WAITING, StepState.FAILED}:
        state = StepState.DONE  # what was to be taken back is still there
    step = replace(
        before,
        state=state,
        output=data.get("output", before.output),
        why=data.get("why", ""),
        kind=data.get("kind", ""),
        ended_at=record.at,
        expires_at=None,
        undoing=False,
    )
    run = _step(run, record, step)
    until = data.get("until_us")
    return run if until is None else _until(run, from_microseconds(until))


def _child(run: Run, record: Record) -> Run:
    step = replace(
        _begun(run, record),
        state=StepState.WAITING,
        child=RunId(_data(record)["child"]),
        why="its own run",
    )
    return _until(_step(run, record, step), None)


def _jump(run: Run, record: Record) -> Run:
    """A clock jump moves what the run waits for along with it: nothing expires by the jump alone."""
    shift = from_microseconds(_data(record)["by_us"]) - from_microseconds(0)
    plan = run.plan and replace(run.plan, expires_at=run.plan.expires_at + shift)
    steps = {
        key: replace(
            step,
            started_at=step.started_at and step.started_at + shift,
            expires_at=step.expires_at and step.expires_at + shift,
        )
        if step.ended_at is None
        else step
        for key, step in run.steps.items()
    }
    return replace(run, plan=plan, steps=steps, due_at=run.due_at and run.due_at + shift)


_FOLDS = {
    EventKind.RUN_STATE: _state,
    EventKind.PLAN_MADE: _plan_made,
    EventKind.PLAN_VOIDED: _plan_voided,
    EventKind.APPROVAL_GIVEN: _approval,
    EventKind.BREAK_GLASS: _approval,
    EventKind.LOCKS_TAKEN: _locks,
    EventKind.STEP_READ: _step_read,
    EventKind.STEP_SKIPPED: _step_skipped,
    EventKind.STEP_WAITS: _step_waits,
    EventKind.STEP_INTENDED: _step_intended,
    EventKind.STEP_FINISHED: _step_finished,
    EventKind.STEP_RESOLVED: _step_finished,
    EventKind.CHILD_STARTED: _child,
    EventKind.CLOCK_JUMPED: _jump,
}
