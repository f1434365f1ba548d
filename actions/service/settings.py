"""What the verbs on services need to know of the site. Made by `actions.catalogue`; values only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from actions.hands import ClusterHands, NodeHands
from config.ids import ClusterName
from config.node_names import NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """Rules of the site for services."""

    units: frozenset[str]
    """Units that may be started and restarted at all."""
    hands_off: Callable[[ClusterName, NodeName], str]
    """Why no runbook may touch this node (protected host, hands-off label); empty if it may."""
    slurmd_unit: str = "slurmd"
    quiet_after_start: timedelta = timedelta(seconds=60)
    """After a start of slurmctld nothing acts for so long (hands 1)."""
    largest_clock_offset: timedelta = timedelta(seconds=30)
    """Beyond it munge would refuse what a restarted slurmd says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """What the verbs on services work with."""

    clusters: Mapping[ClusterName, ClusterHands]
    nodes: NodeHands
    settings: ServiceSettings
