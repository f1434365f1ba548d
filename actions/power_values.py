"""What a look at a machine's power can answer, as plain values. Made by `actions.power`. Pure."""

from dataclasses import dataclass
from enum import StrEnum


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
