"""Every verb by name: each area is given its hands here, for every cluster of the site.

Used through `actions.catalogue`.
"""

from collections.abc import Mapping
from datetime import timedelta

from actions.canary.settings import Hands as CanaryVerbs
from actions.canary.verbs import actions as canary_actions
from actions.contract import Action, ActionSpec, Call, Observation, Outcome
from actions.hands import ClusterHands, Page, Pager, PageReceipt
from actions.host_look import Eyes
from actions.job.settings import Hands as JobVerbs
from actions.job.settings import JobSettings
from actions.job.verbs import actions as job_actions
from actions.node.settings import Hands as NodeVerbs
from actions.node.settings import NodeSettings
from actions.node.verbs import actions as node_actions
from actions.page.send import actions as page_actions
from actions.power.hands import Hands as PowerVerbs
from actions.power.hands import PowerSettings
from actions.power.unpowered import NoPower
from actions.power.verbs import actions as power_actions
from actions.remote.unreached import UnreachedNodes
from actions.reservation.settings import Hands as ReservationVerbs
from actions.reservation.settings import ReservationSettings
from actions.reservation.verbs import actions as reservation_actions
from actions.service.settings import Hands as ServiceVerbs
from actions.service.settings import ServiceSettings
from actions.service.verbs import actions as service_actions
from actions.site import ClusterSite, SiteRules
from config.ids import ClusterName


def registry(
    sites: Mapping[ClusterName, ClusterSite], rules: SiteRules, pager: Pager
) -> dict[str, Action]:
    """Every verb by name."""
    found: dict[str, dict[ClusterName, Action]] = {}
    clusters = {name: site.cluster for name, site in sites.items()}
    for name, site in sites.items():
        for action in (
            *node_actions(_node_hands(clusters, site, rules)),
            *service_actions(_service_hands(clusters, site, rules)),
            *canary_actions(_canary_hands(clusters, site)),
            *power_actions(_power_hands(clusters, site, rules)),
            *reservation_actions(_reservation_hands(clusters, site, rules)),
            *job_actions(_job_hands(clusters, site, rules)),
        ):
            found.setdefault(action.spec.name, {})[name] = action
    verbs: dict[str, Action] = {name: _ByCluster(actions) for name, actions in found.items()}
    return verbs | {action.spec.name: action for action in page_actions(pager)}


def contracts() -> dict[str, ActionSpec]:
    """The contract of every verb by name, for who checks runbooks and has no cluster."""
    unreached = UnreachedNodes()
    of_nodes = NodeVerbs(
        clusters={},
        nodes=unreached,
        settings=NodeSettings(hands_off=lambda *_: "", pool=lambda *_: frozenset()),
    )
    of_services = ServiceVerbs(
        clusters={},
        nodes=unreached,
        settings=ServiceSettings(units=frozenset(), hands_off=lambda *_: ""),
    )
    of_reservations = ReservationVerbs(
        clusters={}, jobs={}, settings=ReservationSettings(hands_off=lambda *_: "")
    )
    of_jobs = JobVerbs(
        clusters={},
        jobs={},
        settings=JobSettings(hands_off=lambda *_: ""),
        pause=lambda _: None,
    )
    of_power = PowerVerbs(
        clusters={},
        eyes=Eyes(nodes=unreached),
        power=NoPower(),
        settings=PowerSettings(hands_off=lambda *_: ""),
        pause=lambda _: None,
    )
    verbs = (
        *node_actions(of_nodes),
        *service_actions(of_services),
        *canary_actions(CanaryVerbs(clusters={})),
        *power_actions(of_power),
        *reservation_actions(of_reservations),
        *job_actions(of_jobs),
        *page_actions(_NoPager()),
    )
    return {verb.spec.name: verb.spec for verb in verbs}


def changing() -> Mapping[str, bool]:
    """Every verb that changes something, with whether it may end a job."""
    return {name: spec.may_end_jobs for name, spec in contracts().items() if not spec.looks_only}


class _NoPager:
    """Where nothing is carried out, nobody is woken."""

    def send(self, page: Page, *, deadline: timedelta) -> tuple[PageReceipt, ...]:
        """Nobody was asked."""
        return ()


def _node_hands(
    clusters: Mapping[ClusterName, ClusterHands], site: ClusterSite, rules: SiteRules
) -> NodeVerbs:
    settings = NodeSettings(
        hands_off=rules.hands_off, pool=rules.pool, boot_time=rules.boot_time, spares=site.spares
    )
    history = site.history
    return NodeVerbs(
        clusters=clusters,
        nodes=site.nodes,
        vantage=site.vantage,
        settings=settings,
        histories={} if history is None else {site.cluster.name: history},
        jobs={} if site.jobs is None else {site.cluster.name: site.jobs},
        changes={} if site.changes is None else {site.cluster.name: site.changes},
    )


def _canary_hands(clusters: Mapping[ClusterName, ClusterHands], site: ClusterSite) -> CanaryVerbs:
    name, canary, rules = site.cluster.name, site.canary, site.canary_rules
    return CanaryVerbs(
        clusters=clusters,
        jobs={} if site.jobs is None else {name: site.jobs},
        canaries={} if canary is None else {name: canary},
        rules={} if rules is None else {name: rules},
    )


def _service_hands(
    clusters: Mapping[ClusterName, ClusterHands], site: ClusterSite, rules: SiteRules
) -> ServiceVerbs:
    settings = ServiceSettings(units=site.units, hands_off=rules.hands_off)
    return ServiceVerbs(clusters=clusters, nodes=site.nodes, settings=settings)


def _reservation_hands(
    clusters: Mapping[ClusterName, ClusterHands], site: ClusterSite, rules: SiteRules
) -> ReservationVerbs:
    return ReservationVerbs(
        clusters=clusters,
        jobs={} if site.jobs is None else {site.cluster.name: site.jobs},
        settings=ReservationSettings(hands_off=rules.hands_off),
    )


def _job_hands(
    clusters: Mapping[ClusterName, ClusterHands], site: ClusterSite, rules: SiteRules
) -> JobVerbs:
    name = site.cluster.name
    return JobVerbs(
        clusters=clusters,
        jobs={} if site.jobs is None else {name: site.jobs},
        settings=JobSettings(
            hands_off=rules.hands_off,
            spares=site.spares,
            restartable=rules.restartable(name),
        ),
        pause=site.pause,
        readings=site.readings,
        powers={name: site.power},
    )


def _power_hands(
    clusters: Mapping[ClusterName, ClusterHands], site: ClusterSite, rules: SiteRules
) -> PowerVerbs:
    return PowerVerbs(
        clusters=clusters,
        eyes=Eyes(nodes=site.nodes, vantage=site.vantage),
        power=site.power,
        settings=PowerSettings(
            hands_off=rules.hands_off, restartable=rules.restartable(site.cluster.name)
        ),
        pause=site.pause,
        changes={} if site.changes is None else {site.cluster.name: site.changes},
    )


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
