"""`power.observe`: what the BMC says of a machine's power, and the end of its event log.

Called by the engine. Looks only. `fenced` is true only where the power was read off twice and the host
answers nobody: then its ranks no longer write (hands 2). A bot that is cut off itself finds nothing.
"""

from dataclasses import dataclass
from datetime import timedelta

from actions.contract import (
    ActionSpec,
    Call,
    Done,
    Field,
    Observation,
    Outcome,
    Refusal,
    Standing,
    Unknown,
    Unreadable,
    ValueType,
)
from actions.power.hands import Hands
from actions.power.readings import read, target
from actions.power.rules import contradiction
from actions.power_hands import PowerState
from config.json_values import JsonMap
from config.permissions import Permission

NODE = Field(type=ValueType.NODE, help="node as the cluster names it")
_LONGEST_LOG = 2000

_SPEC = ActionSpec(
    name="power.observe",
    version=1,
    summary="Read what the BMC says of a machine's power, and whether its host is dead",
    permission=Permission.NODE_READ,
    parameters={"node": NODE},
    output={
        "power": Field(type=ValueType.TEXT, help="on, off (read twice) or unknown"),
        "power_evidence": Field(type=ValueType.TEXT, help="what was said"),
        "power_source": Field(type=ValueType.TEXT, help="who said it"),
        "host_verdict": Field(type=ValueType.TEXT, help="alive, dead, silent, cut_off or unknown"),
        "host_evidence": Field(type=ValueType.FACTS, help="list of sentences"),
        "fenced": Field(
            type=ValueType.TRUTH, help="whether it is off for certain, so that it writes nothing"
        ),
        "event_log": Field(
            type=ValueType.TEXT, help="end of the hardware's log, or why it was not read"
        ),
    },
    looks_only=True,
    time_limit=timedelta(minutes=5),
)


@dataclass(frozen=True, slots=True)
class ObservePower:
    """The verb."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _SPEC

    def look(self, call: Call) -> Observation:
        """Nothing is decided by a look. Raises Refusal."""
        return Observation(standing=Standing.NOT_SO, why=f"{target(call)} can be asked")

    def do(self, call: Call) -> Outcome:
        """Read it."""
        try:
            return Done(output=self._output(call))
        except Unreadable as error:
            return Unknown(why=str(error))
        except Refusal as error:
            return Done(output=_unknown(str(error)))

    def _output(self, call: Call) -> JsonMap:
        seen = read(call, self.hands)
        off = seen.power.state is PowerState.OFF
        return {
            "power": seen.power.state.value,
            "power_evidence": seen.power.evidence[:300],
            "power_source": seen.power.source,
            "host_verdict": seen.verdict.host.value,
            "host_evidence": [
                line[:200] for line in (*seen.verdict.missing, *seen.verdict.evidence)
            ],
            "fenced": off and not contradiction(seen),
            "event_log": self._log(call),
        }

    def _log(self, call: Call) -> str:
        try:
            return self.hands.power.event_log(target(call))[-_LONGEST_LOG:]
        except (Unreadable, Refusal) as error:
            return f"not read: {error}"[:300]


def _unknown(why: str) -> JsonMap:
    """Where the site has no way to that machine's power: a person must see to it."""
    return {
        "power": PowerState.UNKNOWN.value,
        "power_evidence": why[:300],
        "power_source": "",
        "host_verdict": "unknown",
        "host_evidence": [],
        "fenced": False,
        "event_log": f"not read: {why}"[:300],
    }
