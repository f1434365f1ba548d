"""What the verbs on nodes need to know of the site. Made by `actions.catalogue`; values only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from actions.contract import Field, ValueType
from actions.hands import ClusterHands, JobHands, NodeChanges, NodeHands, ReasonHistory
from actions.spares import NO_SPARES, SpareRules
from actions.vantage import Vantage
from config.ids import ClusterName
from config.node_names import NodeName

NODE = Field(type=ValueType.NODE, help="node as the cluster names it")
"""The parameter that every verb of this area has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """Rules of the site for its nodes."""

    hands_off: Callable[[ClusterName, NodeName], str]
    """Why no runbook may touch this node (protected host, hands-off label); empty if it may."""
    pool: Callable[[ClusterName, NodeName], frozenset[NodeName]]
    """The nodes that count as one pool with this one, itself included; empty where none does."""
    boot_time: Callable[[ClusterName, NodeName], timedelta | None] = lambda _cluster, _node: None
    """How long a boot takes in the pool of this node; None where the site has not said."""
    spares: SpareRules = NO_SPARES
    """What the site says of its spares."""
    slurmd_unit: str = "slurmd"
    quiet_after_start: timedelta = timedelta(seconds=60)
    """After a start of slurmctld nothing acts for so long: states are not settled yet (hands 1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """What the verbs on nodes work with."""

    clusters: Mapping[ClusterName, ClusterHands]
    nodes: NodeHands
    settings: NodeSettings
    vantage: Vantage | None = None
    """Other places from which a silent host is asked; without them none counts as dead."""
    histories: Mapping[ClusterName, ReasonHistory] = field(default_factory=dict)
    """Of the clusters whose accounting can be asked."""
    jobs: Mapping[ClusterName, JobHands] = field(default_factory=dict)
    """Of the clusters whose reservations can be read past the snapshot's cache."""
    changes: Mapping[ClusterName, NodeChanges] = field(default_factory=dict)
    """Of the clusters whose back end can do more than drain and return."""
