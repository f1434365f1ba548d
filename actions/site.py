"""One cluster with its hands, and what the verbs must know of the site beside it. Values only.

Made by `actions.catalogue`, taken apart by `actions.registry`.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from actions.canary.settings import CanaryRules
from actions.hands import CanaryHands, ClusterHands, JobHands, NodeChanges, NodeHands, ReasonHistory
from actions.node_readings import NodeReadings
from actions.power.unpowered import NoPower
from actions.power_hands import PowerHands
from actions.slurm.rights import Rights
from actions.spares import NO_SPARES, SpareRules
from actions.vantage import Vantage
from config.ids import ClusterName
from config.job_settings import Restartable
from config.node_names import NodeName


def _wait(span: timedelta) -> None:
    time.sleep(span.total_seconds())


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSite:
    """The hands of one cluster."""

    cluster: ClusterHands
    nodes: NodeHands
    access_faults: Callable[[NodeName], tuple[str, ...]] | None = None
    """What is wrong with the way to one node; None where no node is reached over the network."""
    vantage: Vantage | None = None
    """Other places from which a silent host is asked."""
    readings: NodeReadings | None = None
    """Further looks on its nodes, where there is a way to them."""
    power: PowerHands = field(default_factory=NoPower)
    pause: Callable[[timedelta], None] = _wait
    """Waits in the calling worker thread."""
    history: ReasonHistory | None = None
    """Who wrote which Reason, where accounting can be asked."""
    canary: CanaryHands | None = None
    canary_rules: CanaryRules | None = None
    """What the site says of its canary, where it has one."""
    spares: SpareRules = NO_SPARES
    """What the site says of its spares."""
    changes: NodeChanges | None = None
    """Writes beyond drain and return, where the back end has them."""
    jobs: JobHands | None = None
    """Jobs and reservations, where its back end can write them."""
    units: frozenset[str]
    close: Callable[[], None]
    faults: Callable[[], tuple[str, ...]] = tuple
    """Why the bot must not act on it, asked at start. Raises Unreadable."""
    rights: Callable[[], Rights] = Rights
    """What the bot's user lacks, as far as that shows without acting."""
    remarks: Callable[[], tuple[str, ...]] = tuple
    """What `doctor` should say of how the cluster is read; asks nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRules:
    """What the verbs must know of the site beside its clusters."""

    hands_off: Callable[[ClusterName, NodeName], str]
    """Why no runbook may touch this node; empty if it may."""
    pool: Callable[[ClusterName, NodeName], frozenset[NodeName]]
    """The nodes that share a budget with this one."""
    boot_time: Callable[[ClusterName, NodeName], timedelta | None] = lambda _cluster, _node: None
    """How long a boot takes in the pool of this node; None where the site has not said."""
    restartable: Callable[[ClusterName], Sequence[Restartable]] = lambda _cluster: ()
    """Which jobs go on from a checkpoint, as the site says."""
