"""The site's policy as the engine uses it: values that `bot.wiring` makes from the settings. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from config.ids import ClusterName
from config.node_names import NodeName
from config.policy import Autonomy
from config.policy import Policy as SitePolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Nodes that share one budget of unavailable nodes."""

    name: str
    nodes: frozenset[NodeName]
    max_out: int
    """At most so many of them may be out at once, whoever took them out; never 0."""
    rma: frozenset[NodeName] = frozenset()
    """Sent back to the vendor: listed by name in the settings, not counted, not acted on."""
    boot_time: timedelta | None = None
    """How long a boot takes there; None where the site has not said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Everything the deciders need to know of the site."""

    site: SitePolicy
    """Limits, approvals and autonomy, as the settings give them."""
    protected: Mapping[ClusterName, frozenset[NodeName]]
    """Hosts that no runbook acts on."""
    pool_of: Callable[[ClusterName, NodeName], Pool | None]
    """The pool that counts a node, None where none does."""
    lacks: Callable[[ClusterName, str], str] = lambda _cluster, _verb: ""
    """Which right the bot's own user lacks for this verb, and how it is given; empty when it may."""

    def autonomy_of(
        self, runbook: str, cause: str, told: str, *, asked_by_person: bool
    ) -> Autonomy:
        """How far the bot may go: the site's word and the diagnosis' own, whichever is less.

        `told` is what the diagnosis allows after its own conditions, "" where there is none.
        """
        level = self.site.autonomy.level(runbook, cause or None, asked_by_person=asked_by_person)
        return min(level, Autonomy(told), key=list(Autonomy).index) if told else level
