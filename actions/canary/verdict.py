"""`canary.await`: whether the canary passed. Looks only; no verdict in time is a verdict: not passed.

Called by the engine, which asks again at the time that a Wait names. It must never call a canary passed
that it cannot see.
"""

from dataclasses import dataclass
from datetime import timedelta

from actions.canary import readings
from actions.canary.settings import NODE, RESERVATION, CanaryRules, Hands
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
    Standing,
    Unknown,
    Unreadable,
    ValueType,
    Wait,
)
from actions.hands import Canary, CanaryWord
from config.durations import format_duration
from config.permissions import Permission

_POLL = timedelta(seconds=10)
_PATIENCE = timedelta(minutes=10)
"""Beyond its time limit: to be scheduled, to end, to be seen."""
_LONGEST = 1500

_SPEC = ActionSpec(
    name="canary.await",
    version=1,
    summary="Wait for the verdict of a canary",
    permission=Permission.NODE_READ,
    parameters={"node": NODE, "reservation": RESERVATION},
    output={
        "passed": Field(type=ValueType.TRUTH, help="whether it ended with code 0 on that node"),
        "why": Field(type=ValueType.TEXT, help="state and exit code, or why there is no verdict"),
        "lines": Field(
            type=ValueType.TEXT, help="last lines of its output, where they can be read"
        ),
    },
    looks_only=True,
    time_limit=timedelta(days=1),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verb."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _SPEC

    def look(self, call: Call) -> Observation:
        """How far it has come. Raises Unreadable, Refusal."""
        name = readings.reservation_name(call)
        seen = readings.canaries(call, self.hands).state(name)
        return Observation(standing=Standing.NOT_SO, why=f"canary {name} is {seen.word}")

    def do(self, call: Call) -> Outcome:
        """Done when there is a verdict, Wait while there is none."""
        try:
            rules = readings.rules(call, self.hands)
            seen = readings.canaries(call, self.hands).state(readings.reservation_name(call))
            late = self._late(call, rules)
        except Unreadable as error:
            return Unknown(why=str(error))
        except Refusal as error:
            return Failed(error=str(error), kind=FailureKind.REFUSED)
        return _outcome(call, seen, late)

    def _late(self, call: Call, rules: CanaryRules) -> str:
        """Why nothing is waited for any more; empty while one may wait."""
        found = readings.held(call, self.hands)
        if found is None:
            return "its reservation is gone, other work may start on the node"
        longest = rules.time_limit + _PATIENCE
        if found.starts_at is not None and call.now >= found.starts_at + longest:
            return f"it has not ended {format_duration(longest)} after its reservation began"
        return ""


def _outcome(call: Call, seen: Canary, late: str) -> Outcome:
    if seen.word is CanaryWord.PASSED:
        return Done(output=_output(True, seen.why or "it passed", seen))
    if seen.word is CanaryWord.FAILED:
        return Done(output=_output(False, seen.why or "it failed", seen))
    if seen.word is CanaryWord.NONE:
        return Done(output=_output(False, "nothing is known of it any more", seen))
    if late:
        return Done(output=_output(False, f"{late} (it is {seen.word})", seen))
    return Wait(until=call.now + _POLL, why=f"the canary on {call.node} is {seen.word}")


def _output(passed: bool, why: str, seen: Canary) -> dict[str, bool | str]:
    return {"passed": passed, "why": why[:300], "lines": seen.lines[-_LONGEST:]}
