"""Which news of a run must be a new message with a mention, because an edit rings no phone. Pure.

Used by `bot.slack.stories`. Each ring has a name by which it is known whether it was sent, also over a
restart: one name, one message.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from config.json_values import Json, JsonMap
from config.permissions import Permission
from runbooks.machine import RunState
from runbooks.run import Run

SOON = timedelta(minutes=2)
"""A deadline nearer than this rings (design 8)."""
ASKING = frozenset({RunState.AWAITING_APPROVAL, RunState.NEEDS_PERSON, RunState.PAUSED})
"""States that last until a person does something."""
HOLDS: Mapping[str, Permission] = {
    "halted: ": Permission.HALT_CLEAR,
    "the ledger was restored: ": Permission.AUDIT_MANAGE,
}
"""How the engine says that no effect may begin before a person allows it, and what that takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """Something ends by itself unless somebody acts."""

    note: str
    """Name of its ring."""
    at: datetime
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """A reason for a new message."""

    note: str
    line: str = ""
    """What it says above the card's lines."""


def by_state(run: Run) -> bool:
    """Whether the state itself rings."""
    return run.state in ASKING or (run.state is RunState.FAILED and run.parent is None)


def held(run: Run) -> Permission | None:
    """What a person needs who can let this run go on, None for a run that nobody holds."""
    if run.state is not RunState.WAITING:
        return None
    return next((needed for words, needed in HOLDS.items() if run.why.startswith(words)), None)


def deadlines(
    asking: Run, looks: Iterable[tuple[str, JsonMap]], now: datetime
) -> tuple[Deadline, ...]:
    """What ends by itself while this run stands still; `looks` are the names of nodes and the outputs
    that describe them, the newest last.
    """
    found = []
    plan = asking.plan
    if asking.state is RunState.AWAITING_APPROVAL and plan is not None and now < plan.expires_at:
        line = f"without a yes the plan expires at {plan.expires_at:%H:%M:%S} UTC"
        note = f"deadline {asking.id} plan {plan.ask}"
        found.append(Deadline(note=note, at=plan.expires_at, line=line))
    if asking.state in ASKING or asking.state is RunState.WAITING:
        found.extend(_deaths(looks, now))
    return tuple(found)


def due(known: Iterable[Deadline], now: datetime) -> tuple[tuple[Ring, ...], float | None]:
    """The rings of deadlines that are near, and seconds until the next one gets near."""
    near, far = [], []
    for deadline in known:
        if deadline.at - now <= SOON:
            near.append(Ring(note=deadline.note, line=f"Under 2 minutes: {deadline.line}"))
        else:
            far.append((deadline.at - now - SOON).total_seconds())
    return tuple(near), min(far, default=None)


def _deaths(looks: Iterable[tuple[str, JsonMap]], now: datetime) -> Iterable[Deadline]:
    """When the jobs on a silent node die, as the newest look at it says."""
    for node, look in dict(looks).items():
        earliest = _moment(look.get("dies_at_earliest"))
        latest = _moment(look.get("dies_at_latest")) or earliest
        if earliest is None or latest is None or latest <= now or look.get("jobs") == []:
            continue
        line = f"the jobs on {node} die from {earliest:%H:%M} UTC on"
        yield Deadline(note=f"deadline death {node}", at=earliest, line=line)


def _moment(value: Json) -> datetime | None:
    """A time in an output; None where there is none."""
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) and value else None
    except ValueError:
        return None
