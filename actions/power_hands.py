"""The hand on the power of machines, past their operating systems: its contract and its values. Pure.

A page of `actions.contract` by itself. Implemented by `actions.power` and `actions.simulated`, used by
the verbs of `actions.power`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from config.node_names import NodeName


class PowerState(StrEnum):
    """Power of one machine as its BMC (or the site's script) names it."""

    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"
    """It answered, and the answer is neither: on its way, or a word that this version does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerReading:
    """One answer to the question for the power, with what proves it."""

    state: PowerState
    evidence: str
    """What was said, shortened, from outside."""
    source: str = ""
    """Who was asked: the BMC's address, or the script."""


class PowerHands(Protocol):
    """The power of machines.

    Every method raises Unreadable when nobody answered, or not in a form this version knows, and
    Refusal where the site configured no way to that machine. Writes make one request, without a
    read-back: Unreadable means that nothing was sent, WriteUnknown that it may have happened,
    Rejected that the other side said no.
    """

    def status(self, node: NodeName) -> PowerReading:
        """What the BMC says of the power now, asked once. One "off" proves nothing (hands 2)."""
        ...

    def off(self, node: NodeName, effect_id: str) -> None:
        """Take the power away at once, without asking the operating system."""
        ...

    def on(self, node: NodeName, effect_id: str) -> None:
        """Give power."""
        ...

    def cycle(self, node: NodeName, effect_id: str) -> None:
        """Take the power away and give it back."""
        ...

    def event_log(self, node: NodeName) -> str:
        """The end of the hardware's own log (SEL), one event a line, capped."""
        ...
