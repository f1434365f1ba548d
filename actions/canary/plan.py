"""`canary.plan`: whether a canary tries this node, as whom, and in which reservation. Looks only."""

import hashlib
from dataclasses import dataclass
from datetime import timedelta

from actions.canary import readings
from actions.canary.settings import NODE, CanaryRules, Hands
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
)
from actions.hands import CanaryHands, CanaryWord
from actions.ownership import reservation_name
from config.durations import format_duration
from config.json_values import JsonMap
from config.permissions import Permission

NOT_CONFIGURED = "no canary configured: the gate alone decides"
KEPT = timedelta(hours=2)
"""So much longer than the canary may run is its node kept: time for a person, should the bot die."""
_MOST_TRIES = 20
_MINUTE = timedelta(minutes=1)

_SPEC = ActionSpec(
    name="canary.plan",
    version=1,
    summary="Say whether a canary tries this node, as whom, and in which reservation",
    permission=Permission.NODE_READ,
    parameters={"node": NODE},
    output={
        "enabled": Field(type=ValueType.TRUTH, help="whether the site has configured one"),
        "user": Field(type=ValueType.TEXT, help="account under which it runs, or empty"),
        "reservation": Field(type=ValueType.TEXT, help="name of the reservation, or empty"),
        "length": Field(type=ValueType.DURATION, help="how long the node is kept for it"),
        "flags": Field(type=ValueType.TEXT, help="flags of the reservation"),
        "why": Field(type=ValueType.TEXT, help="one sentence for the card"),
    },
    looks_only=True,
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The verb."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _SPEC

    def look(self, call: Call) -> Observation:
        """Nothing is decided by a look. Raises Refusal."""
        return Observation(standing=Standing.NOT_SO, why=f"a canary for {readings.target(call)}")

    def do(self, call: Call) -> Outcome:
        """Name the first reservation of this run that no canary has used."""
        found = readings.configured(call, self.hands)
        try:
            return Done(output=_output("", None) if found is None else _planned(call, *found))
        except Unreadable as error:
            return Unknown(why=str(error))
        except Refusal as error:
            return Failed(error=str(error), kind=FailureKind.REFUSED)


def _planned(call: Call, canaries: CanaryHands, rules: CanaryRules) -> JsonMap:
    # Names of nodes do not fit into names of reservations, and one run may try several nodes.
    node = hashlib.sha256(readings.target(call).encode()).hexdigest()[:8]
    for number in range(1, _MOST_TRIES):
        name = reservation_name(call, f"canary_{node}_{number}")
        if canaries.state(name).word is CanaryWord.NONE:
            return _output(name, rules)
    raise Refusal(f"{_MOST_TRIES} canaries of {call.run} have tried {call.node}: a person decides")


def _output(name: str, rules: CanaryRules | None) -> JsonMap:
    length = KEPT if rules is None else rules.time_limit + KEPT
    whole = length - length % _MINUTE
    return {
        "enabled": rules is not None,
        "user": rules.user if rules else "",
        "reservation": name,
        "length": format_duration(whole),
        "flags": "maint,ignore_jobs",
        "why": f"a canary runs as {rules.user} in {name}" if rules else NOT_CONFIGURED,
    }
