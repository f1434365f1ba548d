"""Whether a silent host answers anything, asked from more than one place: its contract and its values. Pure.

A page of `actions.contract` by itself. Implemented by `actions.remote` and `actions.simulated`, judged by
`actions.host_verdict`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from config.node_names import NodeName


class Answer(StrEnum):
    """What came back from the known TCP ports of a host."""

    ANSWERED = "answered"
    """A port was open, or refused: either way something lives there."""
    SILENT = "silent"
    """Each was tried, and none answered within its time limit."""
    NOT_ASKED = "not_asked"
    """Whoever should have tried could not: no finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One attempt from one place."""

    place: str
    """`the bot`, or the name of the node that tried."""
    answer: Answer
    evidence: str
    """The line that proves it, shortened, from outside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """How many of the hosts that must answer did, just now."""

    reached: int
    named: int


class Vantage(Protocol):
    """Places from which a host can be asked. No method raises for what the network does."""

    def references(self) -> References:
        """Whether the bot itself reaches anything (hands 2)."""
        ...

    def from_bot(self, node: NodeName, address: str) -> Tried:
        """The known ports of this node, tried by the bot."""
        ...

    def from_node(self, neighbour: NodeName, node: NodeName, address: str) -> Tried:
        """The same, tried by another node that the bot asks over ssh."""
        ...
