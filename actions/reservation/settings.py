"""What the verbs on reservations need to know of the site. Made by `actions.catalogue`; values only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from actions.contract import Field, ValueType
from actions.hands import ClusterHands, JobHands
from config.ids import ClusterName
from config.node_names import NodeName

NAME = Field(type=ValueType.TEXT, help="its name, as a look of the same run made it")
NODES = Field(type=ValueType.NODES, help="exactly these nodes")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationSettings:
    """Rules of the site for its nodes."""

    hands_off: Callable[[ClusterName, NodeName], str]
    """Why no runbook may touch this node (protected host, hands-off label); empty if it may."""
    quiet_after_start: timedelta = timedelta(seconds=60)
    """After a start of slurmctld nothing acts for so long: states are not settled yet (hands 1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """What the verbs on reservations work with."""

    clusters: Mapping[ClusterName, ClusterHands]
    jobs: Mapping[ClusterName, JobHands]
    """The same clusters, where reservations can be written."""
    settings: ReservationSettings
