"""What the engine is made of, handed to it once by `bot.wiring`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from actions.contract import Action, ActionSpec, ClusterHands
from audit_log.artefacts import ArtefactStore
from audit_log.ledger import Ledger
from config.clock import Clock
from config.ids import ClusterName
from config.node_names import NodeName
from config.permissions import Decision, Permission
from runbooks.definition import Definition
from runbooks.halt import HaltFile
from runbooks.policy import Policy
from runbooks.run import Run


class Rights(Protocol):
    """Whether a run's requester may still do a step: its roles then, minus what was revoked since."""

    def step(
        self, run: Run, permission: Permission, cluster: ClusterName, node: NodeName | None
    ) -> Decision:
        """The verdict; a denial is recorded by whoever implements this."""
        ...


class RunbookLibrary(Protocol):
    """Where runbooks come from."""

    def definition(self, name: str, version: int | None = None) -> Definition:
        """Everything a run of this runbook pins. Raises KeyError with a sentence when unknown."""
        ...

    def names(self) -> tuple[str, ...]:
        """Names of all runbooks."""
        ...


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
