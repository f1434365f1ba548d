"""What the engine is made of, handed to it once by `bot.wiring`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from actions.contract import Action, ActionSpec
from actions.hands import ClusterHands
from audit_log.artefacts import ArtefactStore
from audit_log.ledger import Ledger
from config.clock import Clock
from config.ids import ClusterName
from config.node_names import NodeSet
from config.permissions import Decision, Permission
from runbooks.definition import Definition
from runbooks.halt import HaltFile
from runbooks.policy import Policy
from runbooks.run import Run


class Rights(Protocol):
    """Whether a run's requester may still do a step: its roles then, minus what was revoked since."""

    def step(self, run: Run, permission: Permission, nodes: NodeSet, in_request: int) -> Decision:
        """The verdict on these nodes of the run's cluster; a denial is recorded by whoever implements
        this. `in_request`: nodes that the whole run takes with this permission.
        """
        ...


class RunbookLibrary(Protocol):
    """Where runbooks come from."""

    def definition(self, name: str, version: int | None = None) -> Definition:
        """Everything a run of this runbook pins. Raises KeyError with a sentence when unknown."""
        ...

    def names(self) -> tuple[str, ...]:
        """Names of all runbooks."""
        ...


def nothing() -> None:
    """Where there is no anchor, a run just ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The engine's surroundings."""

    ledger: Ledger
    artefacts: ArtefactStore
    registry: Mapping[str, Action]
    specs: Mapping[str, ActionSpec]
    """Of the registry and of the engine's built-ins."""
    clusters: Mapping[ClusterName, ClusterHands]
    library: RunbookLibrary
    policy: Policy
    rights: Rights
    halt: HaltFile
    clock: Clock
    before_end: Callable[[], None] = nothing
    """Called before a run that changed anything becomes final: anchors the ledger. Never raises, and
    takes a moment at most."""
