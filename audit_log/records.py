"""What the ledger holds: events as they are asked for, records as they are stored.

Pure. The kinds live here, on one page, because a fold must know every kind ever released.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from config.ids import ActorId, ClusterName, RunId, StepId
from config.json_values import JsonMap
from config.node_names import NodeName


class EventKind(StrEnum):
    """Every kind of record. Decisions, effects, refusals and configuration loads; never reads."""

    LEDGER_OPENED = "ledger.opened"
    """First record: instance id."""
    CONFIG_LOADED = "config.loaded"
    STARTED = "bot.started"
    STOPPED = "bot.stopped"
    CLOCK_JUMPED = "clock.jumped"
    RESTORED = "ledger.restored"
    RESTORE_CONFIRMED = "ledger.restore_confirmed"
    ANCHORED = "ledger.anchored"

    REQUEST_DENIED = "request.denied"
    REQUEST_REFUSED = "request.refused"
    """Allowed, but cannot be done: unknown node, halted, limit."""

    RUN_REQUESTED = "run.requested"
    RUN_STATE = "run.state"
    """A move of the run's state machine that no other event implies."""
    PLAN_MADE = "plan.made"
    PLAN_VOIDED = "plan.voided"
    APPROVAL_GIVEN = "approval.given"
    APPROVAL_DENIED = "approval.denied"
    BREAK_GLASS = "approval.break_glass"
    LOCKS_TAKEN = "locks.taken"
    STEP_READ = "step.read"
    """A step that only looks has its output."""
    STEP_SKIPPED = "step.skipped"
    STEP_WAITS = "step.waits"
    STEP_INTENDED = "step.intended"
    STEP_FINISHED = "step.finished"
    STEP_LATE = "step.late"
    """An outcome for an attempt that is no longer open."""
    STEP_RESOLVED = "step.resolved"
    """A person said whether an unknown effect happened."""
    CHILD_STARTED = "child.started"
    STEP_TAKEN_OVER = "step.taken_over"
    """What a called run left behind; its caller takes it back, and the called run has ended."""

    PAGE_INTENDED = "page.intended"
    PAGE_ACCEPTED = "page.accepted"
    PAGE_NOT_SENT = "page.not_sent"

    HALT_SET = "halt.set"
    HALT_CLEARED = "halt.cleared"
    HANDS_OFF_SET = "hands_off.set"
    HANDS_OFF_CLEARED = "hands_off.cleared"
    LIMIT_TRIPPED = "limit.tripped"
    LIMIT_CLEARED = "limit.cleared"
    MARK_LOST = "mark.lost"
    """A drain of ours that the controller forgot or that somebody replaced."""

    CARD_POSTED = "card.posted"
    """Where the card of a run lies in Slack, so that a restart updates it and posts no second."""
    CARD_NOTED = "card.noted"
    """What was told in the card's thread, so that a restart tells nothing twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something to be recorded. `data` is JSON without floats, at most 8 KiB with the rest."""

    kind: EventKind
    actor: ActorId
    run: RunId | None = None
    step: StepId | None = None
    cluster: ClusterName | None = None
    node: NodeName | None = None
    data: JsonMap = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """An event in the chain."""

    seq: int
    at: datetime
    event: Event
    prev: str
    """Digest of the record before, 64 zeros for the first."""
    digest: str
