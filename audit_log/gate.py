"""The gate: asks the policy and records every refusal.

Called by the desk for each request and by the engine when a step is about to act. What is allowed
is recorded by the request or intent itself, in the caller's transaction. Equal refusals within one
minute become one record with a count, and so do those of one actor that are many, equal or not
(`audit_log.refusal_limit`): who presses a button a thousand times must not fill the ledger. `flush`
runs with the worker's clock, `close` at shutdown, so that no count is lost.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from audit_log.ledger import Ledger, Urgency
from audit_log.policy import decide
from audit_log.records import Event, EventKind
from audit_log.refusal_limit import RefusalLimit
from config.actors import Actor, Door
from config.clock import Clock, microseconds
from config.ids import ActorId, RunId
from config.json_values import Json, JsonMap
from config.permissions import Decision, Denied, Permission, Role, Target

WINDOW = timedelta(minutes=1)
"""How long equal refusals are counted before they are recorded again."""

STRANGER = ActorId("stranger")
"""Whoever is nobody in the configuration: the ledger has no id for them, and keeps no name."""

MOST_OPEN = 1000
"""Different refusals counted at a time; the oldest is recorded to make room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Who wants what, where, and through which door."""

    actor: Actor
    permission: Permission
    target: Target
    door: Door
    run: RunId | None = None
    """The run that is about to act, when it is asked again."""


@dataclass(slots=True)
class _Repeats:
    """Refusals like one that stands in the ledger, not recorded yet."""

    event: Event
    opened: timedelta
    first: datetime | None = None
    last: datetime | None = None
    count: int = 0


class Gate:
    """Decides and remembers refusals. Safe to use from any thread."""

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        roles: Callable[[], Mapping[str, Role]],
        os_user: Callable[[ActorId], str | None],
    ) -> None:
        """`roles` and `os_user` are asked each time, so that a reload counts at once."""
        self._ledger = ledger
        self._clock = clock
        self._roles = roles
        self._os_user = os_user
        self._open: dict[tuple[str, ...], _Repeats] = {}
        self._lock = threading.Lock()
        self._limit = RefusalLimit(clock)

    def decide(self, question: Question) -> Decision:
        """The decision, recorded nowhere: for `can` and for drawing a button."""
        return decide(
            question.actor,
            question.permission,
            question.target,
            self._roles(),
            self._os_user(question.actor.id),
        )

    def anywhere(self, actor: Actor, permission: Permission) -> bool:
        """Whether any role of the actor grants this somewhere: for help, never for a decision."""
        roles = self._roles()
        held = (roles[name] for name in actor.roles if name in roles)
        return any(permission in grant.permissions for role in held for grant in role.grants)

    def check(self, question: Question) -> Decision:
        """The decision; a refusal is durable (or counted) when this returns."""
        decision = self.decide(question)
        if isinstance(decision, Denied):
            self._count(_key(question), _event(question, decision))
        return decision

    def turn_away(self, door: Door, because: str) -> None:
        """Somebody was not let in at all; recorded (or counted) like a refusal. `because` names nobody."""
        data: dict[str, Json] = {"because": because, "door": door, "enough": [], "nodes": ""}
        event = Event(
            kind=EventKind.REQUEST_DENIED, actor=STRANGER, data={**data, "permission": ""}
        )
        self._count((STRANGER, door, because), event)

    def refuse(self, actor: Actor, door: Door, verb: str, why: str) -> None:
        """What somebody may do and cannot be done now; durable (or counted) when this returns."""
        data: JsonMap = {"verb": verb, "door": door, "why": why[:1000]}
        event = Event(kind=EventKind.REQUEST_REFUSED, actor=actor.id, data=data)
        if self._limit.admits(event):
            self._commit([event])

    def crowded(self, actor: Actor) -> bool:
        """Whether this actor was refused so often in this minute that it is only counted."""
        return self._limit.crowded(actor.id)

    def flush(self) -> None:
        """Record the counts whose minute is over."""
        now = self._clock.now().monotonic
        with self._lock:
            over = [key for key, held in self._open.items() if now - held.opened >= WINDOW]
            done = [self._open.pop(key) for key in over]
        self._commit([*_counts(done), *self._limit.over()])

    def close(self) -> None:
        """Record every count that is left."""
        with self._lock:
            done = list(self._open.values())
            self._open.clear()
        self._commit([*_counts(done), *self._limit.all()])

    def _count(self, key: tuple[str, ...], event: Event) -> None:
        """Count a repetition; record the first, and what had been counted before its minute ended."""
        now = self._clock.now()
        done: list[_Repeats] = []
        with self._lock:
            held = self._open.get(key)
            if held and now.monotonic - held.opened < WINDOW:
                held.count += 1
                held.first, held.last = held.first or now.wall, now.wall
                return
            if not self._limit.admits(event):
                return
            if held:
                done.append(self._open.pop(key))
            elif len(self._open) >= MOST_OPEN:
                done.append(self._open.pop(next(iter(self._open))))
            self._open[key] = _Repeats(event=event, opened=now.monotonic)
        first = _Repeats(event=event, opened=now.monotonic, count=1)
        self._commit(_counts([*done, first]))

    def _commit(self, events: list[Event]) -> None:
        """One record each, in one transaction."""
        if events:
            self._ledger.commit(
                lambda transaction: [transaction.append(event) for event in events], Urgency.ACK
            )


def _counts(repeats: list[_Repeats]) -> list[Event]:
    """The records of what was counted."""
    return [_counted(held) for held in repeats if held.count]


def _event(question: Question, decision: Denied) -> Event:
    """The refusal as it is recorded."""
    nodes = question.target.nodes
    return Event(
        kind=EventKind.REQUEST_DENIED,
        actor=question.actor.id,
        run=question.run,
        cluster=question.target.cluster,
        node=nodes.names[0] if len(nodes) == 1 else None,
        data={
            "because": decision.because,
            "door": question.door,
            "enough": list(decision.enough),
            "nodes": str(nodes),
            "permission": decision.missing,
        },
    )


def _counted(held: _Repeats) -> Event:
    """The event with its count and, for repetitions, when they came."""
    data: dict[str, Json] = {**held.event.data, "count": held.count}
    if held.first and held.last:
        data |= {"first_us": microseconds(held.first), "last_us": microseconds(held.last)}
    event = held.event
    return Event(
        kind=event.kind,
        actor=event.actor,
        run=event.run,
        cluster=event.cluster,
        node=event.node,
        data=data,
    )


def _key(question: Question) -> tuple[str, ...]:
    """What makes two refusals equal."""
    return (
        question.actor.id,
        question.permission,
        question.door,
        question.run or "",
        question.target.cluster or "",
        str(question.target.nodes),
    )
