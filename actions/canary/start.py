"""`canary.start` and `canary.end`: the two writes on a canary.

Called by the engine. The job carries the name of its reservation, so that one that was submitted right
before a crash is found and not submitted twice. A canary never runs on a node that is drained (measured):
it is submitted before the node is given back, waits, and starts as soon as the drain is gone.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from actions.canary import readings
from actions.canary.settings import NODE, RESERVATION, Hands
from actions.contract import (
    ActionSpec,
    Call,
    Done,
    Failed,
    FailureKind,
    Field,
    Observation,
    Outcome,
    Refusal,
    Rejected,
    Standing,
    Unknown,
    Unreadable,
    ValueType,
    WriteUnknown,
)
from actions.hands import CanaryWord
from config.permissions import Permission

_START = ActionSpec(
    name="canary.start",
    version=1,
    summary="Submit the site's canary for a node, inside our reservation of it",
    permission=Permission.NODE_RETURN,
    parameters={"node": NODE, "reservation": RESERVATION},
    output={"state": Field(type=ValueType.TEXT, help="pending, running, passed or failed")},
)
_END = replace(
    _START, name="canary.end", summary="End a canary that has not ended, so that its node is free"
)
_OPEN = frozenset({CanaryWord.PENDING, CanaryWord.RUNNING})


@dataclass(frozen=True, slots=True)
class Start:
    """Submit it."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _START

    def look(self, call: Call) -> Observation:
        """Whether it was submitted already. Raises Unreadable, Refusal."""
        name = readings.reservation_name(call)
        word = readings.canaries(call, self.hands).state(name).word
        if word is not CanaryWord.NONE:
            return Observation(standing=Standing.OURS, why=f"canary {name} is {word}", state=word)
        return Observation(standing=Standing.NOT_SO, why=f"a canary for {readings.target(call)}")

    def do(self, call: Call) -> Outcome:
        """Submit it where the reservation is ours and holds exactly this node."""
        canaries, name = readings.canaries(call, self.hands), readings.reservation_name(call)
        try:
            why = self._not_held(call)
        except Unreadable as error:
            return Failed(error=f"nothing was done: {error}", kind=FailureKind.RETRYABLE)
        except Refusal as error:
            return Failed(error=str(error), kind=FailureKind.REFUSED)
        if why:
            return Failed(error=f"nothing was done: {why}", kind=FailureKind.REFUSED)
        node = readings.target(call)
        return _written(lambda: canaries.start(node, name, name)) or self._read_back(call)

    def _not_held(self, call: Call) -> str:
        """Why the canary would run outside a reservation of ours; empty if it would not."""
        name, node = readings.reservation_name(call), readings.target(call)
        if not readings.is_ours(call):
            return f"reservation {name[:80]} is none of this run"
        found = readings.held(call, self.hands)
        if found is None:
            return f"reservation {name} is not there"
        if found.nodes != (node,):
            return f"reservation {name} holds {', '.join(found.nodes[:8])}, not {node} alone"
        return ""

    def _read_back(self, call: Call) -> Outcome:
        try:
            seen = readings.canaries(call, self.hands).state(readings.reservation_name(call))
        except Unreadable as error:
            return Unknown(why=f"submitted, but not read back: {error}")
        if seen.word is CanaryWord.NONE:
            return Unknown(why="submitted, but nothing of that name is shown")
        return Done(output={"state": seen.word.value})


@dataclass(frozen=True, slots=True)
class End:
    """End it."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _END

    def look(self, call: Call) -> Observation:
        """Whether it has ended already. Raises Unreadable, Refusal."""
        name = readings.reservation_name(call)
        word = readings.canaries(call, self.hands).state(name).word
        standing = Standing.NOT_SO if word in _OPEN else Standing.FOREIGN
        return Observation(standing=standing, why=f"canary {name} is {word}", state=word)

    def do(self, call: Call) -> Outcome:
        """End it, where this run started it."""
        canaries, name = readings.canaries(call, self.hands), readings.reservation_name(call)
        if not readings.is_ours(call):
            why = f"nothing was done: reservation {name[:80]} is none of this run"
            return Failed(error=why, kind=FailureKind.REFUSED)
        return _written(lambda: canaries.end(name)) or Done(output={"state": "ended"})


def _written(write: Callable[[], None]) -> Outcome | None:
    """Write once; None when it went through."""
    try:
        write()
    except WriteUnknown as error:
        return Unknown(why=str(error))
    except Unreadable as error:
        return Failed(error=f"nothing was done: {error}", kind=FailureKind.RETRYABLE)
    except (Rejected, Refusal) as error:
        return Failed(error=f"the canary: {error}", kind=FailureKind.PERMANENT)
    return None
