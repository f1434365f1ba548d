"""What the verbs on jobs need to know of the site. Made by `actions.catalogue`; values only."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from actions.contract import Field, ValueType
from actions.hands import ClusterHands, JobHands
from actions.node_readings import NodeReadings
from actions.power_hands import PowerHands
from actions.spares import NO_SPARES, SpareRules
from config.ids import ClusterName
from config.job_settings import Restartable
from config.node_names import NodeName

JOB = Field(type=ValueType.JOB, help="the job: 12, or 12_3 for one task of an array")
NODE = Field(type=ValueType.NODE, help="the node that it is to leave, as the cluster names it")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """Rules of the site for its jobs."""

    hands_off: Callable[[ClusterName, NodeName], str]
    """Why no runbook may touch this node (protected host, hands-off label); empty if it may."""
    spares: SpareRules = NO_SPARES
    """What the site says of its spares."""
    restartable: Sequence[Restartable] = ()
    between_readings: timedelta = timedelta(seconds=5)
    """Between the two readings that say off: one that is on its way through the BMC is not two."""
    quiet_after_start: timedelta = timedelta(seconds=60)
    """After a start of slurmctld nothing acts for so long: states are not settled yet (hands 1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """What the verbs on jobs work with."""

    clusters: Mapping[ClusterName, ClusterHands]
    jobs: Mapping[ClusterName, JobHands]
    """The same clusters, where jobs and reservations can be written."""
    settings: JobSettings
    pause: Callable[[timedelta], None]
    """Waits in the calling worker thread."""
    readings: NodeReadings | None = None
    """Further looks on the nodes, where the site installed the program for them."""
    powers: Mapping[ClusterName, PowerHands] = field(default_factory=dict)
    """Of the clusters whose machines' power can be asked."""
