"""So many refusals of one actor are recorded one by one in a minute; what is more becomes one record.

Used by the gate. Somebody who sends refused requests as fast as a machine must not fill the ledger;
nothing is hidden by that: the record says how many there were, of what, from when until when.
"""

import threading
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from audit_log.records import Event, EventKind
from config.clock import Clock, microseconds
from config.ids import ActorId
from config.json_values import JsonMap

MINUTE = timedelta(minutes=1)
MOST = 30
"""Of one actor in a minute: more than anybody types, few enough for years of a ledger."""


@dataclass(slots=True)
class _Minute:
    """One actor's refusals in one minute."""

    opened: timedelta
    recorded: int = 0
    counted: Counter[str] = field(default_factory=Counter)
    doors: set[str] = field(default_factory=set)
    first: datetime | None = None
    last: datetime | None = None


class RefusalLimit:
    """Counts by actor. Safe to use from any thread; records nothing itself."""

    def __init__(self, clock: Clock) -> None:
        """Nobody was refused yet."""
        self._clock = clock
        self._minutes: dict[ActorId, _Minute] = {}
        self._lock = threading.Lock()

    def admits(self, event: Event) -> bool:
        """Whether this refusal is to be recorded by itself; otherwise it is counted here."""
        now = self._clock.now()
        with self._lock:
            minute = self._minutes.setdefault(event.actor, _Minute(opened=now.monotonic))
            if minute.recorded < MOST:
                minute.recorded += 1
                return True
            minute.counted[_what(event)] += 1
            minute.doors.add(str(event.data.get("door", "")))
            minute.first, minute.last = minute.first or now.wall, now.wall
            return False

    def crowded(self, actor: ActorId) -> bool:
        """Whether refusals of this actor are only counted now."""
        with self._lock:
            minute = self._minutes.get(actor)
            return minute is not None and bool(minute.counted)

    def over(self) -> list[Event]:
        """The sums of every minute that is over; each actor's next one begins with the next refusal."""
        now = self._clock.now().monotonic
        with self._lock:
            ended = [who for who, one in self._minutes.items() if now - one.opened >= MINUTE]
            return self._summed({who: self._minutes.pop(who) for who in ended})

    def all(self) -> list[Event]:
        """The sums of every minute, over or not: nothing may be lost at the end."""
        with self._lock:
            minutes, self._minutes = self._minutes, {}
            return self._summed(minutes)

    def _summed(self, minutes: dict[ActorId, _Minute]) -> list[Event]:
        return [_sum(who, minute) for who, minute in minutes.items() if minute.counted]


def _what(event: Event) -> str:
    """What was refused, without anything that its sender can choose freely."""
    said = event.data.get("verb") or event.data.get("permission") or "entry"
    denied = "denied" if event.kind is EventKind.REQUEST_DENIED else "refused"
    return f"{denied} {said}"


def _sum(who: ActorId, minute: _Minute) -> Event:
    """The one record of all that was not recorded by itself."""
    count = minute.counted.total()
    of = dict(sorted(minute.counted.items()))
    listed = ", ".join(f"{many} {what}" for what, many in of.items())
    data: JsonMap = {
        "count": count,
        "of": of,
        "doors": sorted(minute.doors),
        "first_us": microseconds(minute.first) if minute.first else 0,
        "last_us": microseconds(minute.last) if minute.last else 0,
        "why": f"{count} refusals beyond {MOST} within a minute: {listed}"[:1000],
    }
    return Event(kind=EventKind.REQUEST_REFUSED, actor=who, data=data)
