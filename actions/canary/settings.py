"""What the verbs on canaries need to know of the site. Made by `actions.catalogue`; values only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from actions.contract import Field, ValueType
from actions.hands import CanaryHands, ClusterHands, JobHands
from config.ids import ClusterName

NODE = Field(type=ValueType.NODE, help="node that is tried")
RESERVATION = Field(
    type=ValueType.TEXT, help="our reservation of this node, as canary.plan names it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryRules:
    """What the site says of its canary."""

    user: str
    """Account under which it runs."""
    time_limit: timedelta
    """So long it may run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """What the verbs on canaries work with."""

    clusters: Mapping[ClusterName, ClusterHands]
    canaries: Mapping[ClusterName, CanaryHands] = field(default_factory=dict)
    jobs: Mapping[ClusterName, JobHands] = field(default_factory=dict)
    """Past any cache: a reservation that was made a second ago must be seen."""
    rules: Mapping[ClusterName, CanaryRules] = field(default_factory=dict)
    """Of the clusters whose site has configured one."""
