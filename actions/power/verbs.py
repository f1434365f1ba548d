"""`power.off`, `power.on`, `power.cycle`, and the list of this area's verbs for `actions.catalogue`.

Called by the engine. Each makes one request to one BMC. Whatever a runbook says, none takes the power
of a host that answers in any way while work is on it, of a node that is not ours to take, or while the
bot itself is cut off. "Off" is done only once it was read twice.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from actions.contract import (
    Action,
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
from actions.power import rules
from actions.power.down import Down
from actions.power.hands import Hands
from actions.power.observe import NODE, ObservePower
from actions.power.readings import power_of, read
from actions.power.rules import Seen
from actions.power_hands import PowerReading, PowerState
from config.json_values import JsonMap
from config.permissions import Permission

_TWO = 2
_OFF = ActionSpec(
    name="power.off",
    version=1,
    summary="Take a machine's power away, so that it certainly writes nothing any more",
    permission=Permission.NODE_POWER,
    parameters={"node": NODE},
    output={
        "power": Field(type=ValueType.TEXT, help="on, off (read twice) or unknown"),
        "power_evidence": Field(type=ValueType.TEXT, help="what was said"),
        "power_source": Field(type=ValueType.TEXT, help="who said it"),
        "before": Field(type=ValueType.TEXT, help="power before the request"),
    },
    may_end_jobs=True,
    persons=_TWO,
    takes_node_out=True,
    # Looking once more (ssh, ports, neighbours), the request, and two readings, one after the other.
    time_limit=timedelta(minutes=5),
)
_ON = replace(
    _OFF,
    name="power.on",
    summary="Give a machine power; its node stays drained until it is returned through its gate",
    may_end_jobs=False,
    takes_node_out=False,
)
_CYCLE = replace(
    _OFF,
    name="power.cycle",
    summary="Take a machine's power away and give it back; its node must be drained by this bot",
    # A BMC does not tell how often it switched: whether a lost request did, a person must find out.
    observable=False,
)


def actions(hands: Hands) -> tuple[Action, ...]:
    """Every verb on power, over these hands."""
    return (
        ObservePower(hands),
        TakePower(hands),
        GivePower(hands),
        CyclePower(hands),
        Down(hands),
    )


@dataclass(frozen=True, slots=True)
class TakePower:
    """`power.off`."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _OFF

    def look(self, call: Call) -> Observation:
        """Whether it is off already, and whether it may be. Raises Unreadable, Refusal."""
        seen = read(call, self.hands)
        if seen.power.state is PowerState.OFF:
            return _already(call, seen, rules.contradiction(seen))
        return _wanted(seen, rules.against_taking(seen, comes_back=False), ends=True)

    def do(self, call: Call) -> Outcome:
        """Look once more, ask for it, read back twice."""
        return _switch(
            call,
            self.hands,
            PowerState.OFF,
            lambda seen: rules.against_taking(seen, comes_back=False),
        )


@dataclass(frozen=True, slots=True)
class GivePower:
    """`power.on`."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _ON

    def look(self, call: Call) -> Observation:
        """Whether it is on already, and whether it may be. Raises Unreadable, Refusal."""
        seen = read(call, self.hands)
        if seen.power.state is PowerState.ON:
            return _already(call, seen, "")
        return _wanted(seen, rules.against_giving(seen), ends=False)

    def do(self, call: Call) -> Outcome:
        """Look once more, ask for it, read back."""
        return _switch(call, self.hands, PowerState.ON, rules.against_giving)


@dataclass(frozen=True, slots=True)
class CyclePower:
    """`power.cycle`."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _CYCLE

    def look(self, call: Call) -> Observation:
        """Whether it may be done. Raises Unreadable, Refusal."""
        seen = read(call, self.hands)
        return _wanted(seen, _against_cycle(seen), ends=True)

    def do(self, call: Call) -> Outcome:
        """Look once more, ask for it, read what the power is then."""
        try:
            seen = read(call, self.hands)
            against = _against_cycle(seen)
            if against:
                return _refused(against)
            self.hands.power.cycle(seen.node.name, call.effect_id)
        except (Unreadable, Refusal, Rejected) as error:
            return _not_done(error)
        except WriteUnknown as error:
            return Unknown(why=str(error))
        try:
            after = self.hands.power.status(seen.node.name)
        except (Unreadable, Refusal) as error:
            return Unknown(why=f"the request was accepted, but the power was not read: {error}")
        return Done(output=_output(after, seen.power))


def _against_cycle(seen: Seen) -> tuple[str, ...]:
    if seen.power.state is PowerState.OFF:
        return (f"{seen.node.name} is off ({seen.power.evidence}): power.on gives it power",)
    return rules.against_taking(seen, comes_back=True)


def _switch(
    call: Call, hands: Hands, wanted: PowerState, against: Callable[[Seen], tuple[str, ...]]
) -> Outcome:
    """One request, and a reading after it. Never raises."""
    ask = hands.power.off if wanted is PowerState.OFF else hands.power.on
    try:
        seen = read(call, hands)
        if seen.power.state is wanted:
            return _as_wanted(seen)
        found = against(seen)
        if found:
            return _refused(found)
        ask(seen.node.name, call.effect_id)
    except (Unreadable, Refusal, Rejected) as error:
        return _not_done(error)
    except WriteUnknown as error:
        return Unknown(why=str(error))
    return _read_back(seen, hands, wanted)


def _as_wanted(seen: Seen) -> Outcome:
    """It was so when it was looked at once more."""
    wrong = rules.contradiction(seen) if seen.power.state is PowerState.OFF else ""
    return _refused((wrong,)) if wrong else Done(output=_output(seen.power, seen.power))


def _read_back(seen: Seen, hands: Hands, wanted: PowerState) -> Outcome:
    """Done where it is as wanted; else the engine looks again until the request is certainly dead."""
    try:
        after = power_of(seen.node.name, hands)
    except (Unreadable, Refusal) as error:
        return Unknown(why=f"the request was accepted, but the power was not read: {error}")
    if after.state is not wanted:
        return Unknown(why=f"the request was accepted, and {after.source} says {after.evidence}")
    return Done(output=_output(after, seen.power))


def _already(call: Call, seen: Seen, wrong: str) -> Observation:
    """In a recovery our own request did it; else somebody did, and nothing is left to do."""
    standing = Standing.OURS if call.intended_at is not None else Standing.FOREIGN
    why = f"{seen.node.name} is {seen.power.state}: {seen.power.evidence}"
    return _observation(seen, Standing.BLOCKED if wrong else standing, wrong or why)


def _wanted(seen: Seen, against: tuple[str, ...], *, ends: bool) -> Observation:
    """Raises Unreadable while the power is neither on nor off."""
    if against:
        return _observation(seen, Standing.BLOCKED, "; ".join(against))
    if seen.power.state is PowerState.UNKNOWN:
        raise Unreadable(f"{seen.power.source} says neither on nor off: {seen.power.evidence}")
    why = f"{seen.node.name} is {seen.power.state} ({seen.power.evidence}); {seen.verdict.why}"
    found = _observation(seen, Standing.NOT_SO, why)
    return replace(found, jobs_end=seen.losses) if ends else found


def _observation(seen: Seen, standing: Standing, why: str) -> Observation:
    return Observation(
        standing=standing,
        why=why,
        boot_id=seen.boot_id,
        owner=seen.holding.owner,
        state=seen.node.state,
        reason=seen.node.reason,
        facts={
            "power": seen.power.state.value,
            "power_evidence": seen.power.evidence[:300],
            "host_verdict": seen.verdict.host.value,
            "host_evidence": list(seen.verdict.evidence),
        },
    )


def _output(after: PowerReading, before: PowerReading) -> JsonMap:
    return {
        "power": after.state.value,
        "power_evidence": after.evidence[:300],
        "power_source": after.source,
        "before": before.state.value,
    }


def _refused(why: tuple[str, ...]) -> Failed:
    return Failed(error=f"nothing was sent: {'; '.join(why)}", kind=FailureKind.REFUSED)


def _not_done(error: Exception) -> Failed:
    """Nothing happened, and that is known."""
    if isinstance(error, Unreadable):
        return Failed(error=f"nothing was sent: {error}", kind=FailureKind.RETRYABLE)
    kind = FailureKind.REFUSED if isinstance(error, Refusal) else FailureKind.PERMANENT
    return Failed(error=f"nothing was done: {error}", kind=kind)
