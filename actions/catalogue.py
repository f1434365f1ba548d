"""Constructs every area of `actions/` from the settings: the only place that knows them all.

Called by `bot.wiring`. What it hands out is the contract's Protocols and one `Action` for each verb;
each verb finds the hands of the cluster that its call names.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from actions.contract import (
    Action,
    ActionSpec,
    Call,
    ClusterHands,
    NodeHands,
    Observation,
    Outcome,
)
from actions.node.settings import Hands as NodeVerbs
from actions.node.settings import NodeSettings
from actions.node.verbs import actions as node_actions
from actions.service.settings import Hands as ServiceVerbs
from actions.service.settings import ServiceSettings
from actions.service.verbs import actions as service_actions
from actions.simulated.client import Line, SimulatedCluster, SimulatedNodes
from config.ids import ClusterName
from config.node_names import NodeName
from config.settings import Cluster, ClusterKind, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSite:
    """The hands of one cluster."""

    cluster: ClusterHands
    nodes: NodeHands
    units: frozenset[str]
    close: Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRules:
    """What the verbs must know of the site beside its clusters."""

    hands_off: Callable[[ClusterName, NodeName], str]
    """Why no runbook may touch this node; empty if it may."""
    pool: Callable[[ClusterName, NodeName], frozenset[NodeName]]
    """The nodes that share a budget with this one."""


def open_cluster(name: ClusterName, settings: Cluster) -> ClusterSite:
    """Hands for one configured cluster; asks no controller yet."""
    if settings.kind is ClusterKind.SIMULATED and settings.simulated_socket is not None:
        line = Line(path=settings.simulated_socket)
        return ClusterSite(
            cluster=SimulatedCluster(name=name, line=line),
            nodes=SimulatedNodes(line=line),
            units=frozenset(settings.units),
            close=lambda: None,
        )
    raise ValueError(f"cluster {name}: kind {settings.kind} has no hands")


def open_clusters(settings: Settings) -> Mapping[ClusterName, ClusterSite]:
    """Hands for every configured cluster."""
    return {
        ClusterName(name): open_cluster(ClusterName(name), cluster)
        for name, cluster in settings.clusters.items()
    }


def registry(
    sites: Mapping[ClusterName, ClusterSite], rules: SiteRules, others: Iterable[Action] = ()
) -> dict[str, Action]:
    """Every verb by name. `others` are verbs that need no cluster (pages)."""
    found: dict[str, dict[ClusterName, Action]] = {}
    clusters = {name: site.cluster for name, site in sites.items()}
    for name, site in sites.items():
        for action in (
            *node_actions(_node_hands(clusters, site, rules)),
            *service_actions(_service_hands(clusters, site, rules)),
        ):
            found.setdefault(action.spec.name, {})[name] = action
    verbs: dict[str, Action] = {name: _ByCluster(actions) for name, actions in found.items()}
    for action in others:
        if action.spec.name in verbs:
            raise ValueError(f"two actions are called {action.spec.name}")
        verbs[action.spec.name] = action
    return verbs


def _node_hands(
    clusters: Mapping[ClusterName, ClusterHands], site: ClusterSite, rules: SiteRules
) -> NodeVerbs:
    settings = NodeSettings(hands_off=rules.hands_off, pool=rules.pool)
    return NodeVerbs(clusters=clusters, nodes=site.nodes, settings=settings)


def _service_hands(
    clusters: Mapping[ClusterName, ClusterHands], site: ClusterSite, rules: SiteRules
) -> ServiceVerbs:
    settings = ServiceSettings(units=site.units, hands_off=rules.hands_off)
    return ServiceVerbs(clusters=clusters, nodes=site.nodes, settings=settings)


class _ByCluster:
    """One verb, carried out by the hands of the cluster that the call names."""

    def __init__(self, actions: Mapping[ClusterName, Action]) -> None:
        self._actions = actions

    @property
    def spec(self) -> ActionSpec:
        """The same for every cluster."""
        return next(iter(self._actions.values())).spec

    def look(self, call: Call) -> Observation:
        """Look with that cluster's hands."""
        return self._actions[call.cluster].look(call)

    def do(self, call: Call) -> Outcome:
        """Do it with that cluster's hands."""
        return self._actions[call.cluster].do(call)
