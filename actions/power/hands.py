"""What the verbs on power work with. Made by `actions.catalogue`; values only."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from actions.hands import ClusterHands, NodeChanges
from actions.host_look import Eyes
from actions.power_hands import PowerHands
from config.ids import ClusterName
from config.job_settings import Restartable
from config.node_names import NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerSettings:
    """Rules of the site for power."""

    hands_off: Callable[[ClusterName, NodeName], str]
    """Why no runbook may touch this node (protected host, hands-off label); empty if it may."""
    restartable: Sequence[Restartable] = ()
    """Which jobs go on from a checkpoint, by the site's word; of all others work is lost."""
    quiet_after_start: timedelta = timedelta(seconds=60)
    """After a start of slurmctld nothing acts for so long (hands 1)."""
    between_readings: timedelta = timedelta(seconds=5)
    """Between the two readings that say off: one that is on its way through the BMC is not two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """Everything a verb on power needs."""

    clusters: Mapping[ClusterName, ClusterHands]
    eyes: Eyes
    power: PowerHands
    settings: PowerSettings
    changes: Mapping[ClusterName, NodeChanges] = field(default_factory=dict)
    """Of the clusters whose back end can set a node DOWN."""
    pause: Callable[[timedelta], None]
    """Waits in the calling worker thread."""
