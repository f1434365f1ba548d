"""The site's policy as the engine uses it: values that `bot.wiring` makes from the settings. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from config.ids import ClusterName
from config.node_names import NodeName
from runbooks.causes import Autonomy


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Nodes that share one budget of unavailable nodes."""

    name: str
    nodes: frozenset[NodeName]
    max_out: int
    """At most so many of them may be out at once, whoever took them out; never 0."""
    rma: frozenset[NodeName] = frozenset()
    """Sent back to the vendor: listed by name in the settings, not counted, not acted on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The rails of hands 5; each latches until a person clears it."""

    job_ending_per_hour: int = 5
    """Actions that can end a job, bot-wide and per pool."""
    gpus_two_persons: int = 64
    """GPUs of all jobs that one plan ends; above it two persons must approve."""
    correlated_nodes: int = 3
    """So many nodes of one rack, switch or reason within `correlated_within` are one incident."""
    correlated_within: timedelta = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Everything the deciders need to know of the site."""

    protected: frozenset[NodeName]
    pools: Mapping[ClusterName, tuple[Pool, ...]]
    limits: Limits = Limits()
    approval_expires: timedelta = timedelta(minutes=15)
    autonomy: Mapping[str, Autonomy] = field(default_factory=dict)
    """`runbook` or `runbook/cause` to autonomy; the more specific wins, `propose` where silent."""
    digest: str = ""
    """SHA-256 of the settings it was made from; part of every plan's hash."""

    def autonomy_of(self, runbook: str, cause: str, told: str) -> Autonomy:
        """How far the bot may go: the site's word and the diagnosis' own, whichever is less.

        `told` is what the diagnosis allows after its own conditions, "" where there is none. A
        runbook that a person named, without a diagnosis, goes by the site's word alone.
        """
        site = self.autonomy.get(f"{runbook}/{cause}") if cause else None
        if not told:
            return site or self.autonomy.get(runbook, Autonomy.PROPOSE)
        allowed = Autonomy(told)
        site = site or self.autonomy.get(runbook)
        return allowed if site is None else min(site, allowed, key=_CAUTION.index)

    def pool_of(self, cluster: ClusterName, node: NodeName) -> Pool | None:
        """The pool that counts this node, None where no pool does."""
        for pool in self.pools.get(cluster, ()):
            if node in pool.nodes:
                return pool
        return None


_CAUTION = (Autonomy.OBSERVE, Autonomy.PROPOSE, Autonomy.ACT)
