"""Constructs every area of `actions/` from the settings: the only place that knows them all.

Called by `bot.wiring`. What it hands out is the contract's Protocols and one `Action` for each verb;
each verb finds the hands of the cluster that its call names.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from actions.canary.of_site import open_canary, rules_of
from actions.canary.settings import CanaryRules
from actions.canary.settings import Hands as CanaryVerbs
from actions.canary.verbs import actions as canary_actions
from actions.contract import (
    Action,
    ActionSpec,
    Call,
    CanaryHands,
    ClusterHands,
    JobHands,
    NodeChanges,
    NodeHands,
    Observation,
    Outcome,
    Page,
    Pager,
    PageReceipt,
    ReasonHistory,
)
from actions.host_look import Eyes
from actions.job.idle_spare import idle_spare
from actions.job.settings import Hands as JobVerbs
from actions.job.settings import JobSettings
from actions.job.verbs import actions as job_actions
from actions.node.settings import Hands as NodeVerbs
from actions.node.settings import NodeSettings
from actions.node.verbs import actions as node_actions
from actions.page.alertmanager import AlertmanagerPager
from actions.page.backends import Backend, MaybeAccepted, NotAccepted
from actions.page.chain import PagerChain
from actions.page.post import Endpoint
from actions.page.send import actions as page_actions
from actions.page.slack_mention import Post, SlackMention
from actions.page.webhook import WebhookPager
from actions.power.doors import open_power
from actions.power.hands import Hands as PowerVerbs
from actions.power.hands import PowerSettings
from actions.power.unpowered import NoPower
from actions.power.verbs import actions as power_actions
from actions.power_hands import PowerHands
from actions.remote.access_check import AccessCheck
from actions.remote.nodes import RemoteNodes
from actions.remote.reference import reaches_any
from actions.remote.settings import RemoteSettings
from actions.remote.unreached import UnreachedNodes
from actions.remote.vantage import RemoteVantage
from actions.reservation.settings import Hands as ReservationVerbs
from actions.reservation.settings import ReservationSettings
from actions.reservation.verbs import actions as reservation_actions
from actions.service.settings import Hands as ServiceVerbs
from actions.service.settings import ServiceSettings
from actions.service.verbs import actions as service_actions
from actions.shell import Runner
from actions.simulated.canary import SimulatedCanary
from actions.simulated.client import Line, SimulatedCluster, SimulatedNodes
from actions.simulated.power import SimulatedPower, SimulatedVantage
from actions.slurm.cli import SlurmCli
from actions.slurm.history import AccountingHistory
from actions.slurm.rights import Rights, rights
from actions.slurm.tools import SlurmSettings
from actions.vantage import Vantage
from config.clock import Clock
from config.ids import ClusterName
from config.job_settings import Restartable
from config.node_names import NodeName
from config.redaction import Redactor
from config.secret_store import SecretStore
from config.settings import Cluster, ClusterKind, PageBackend, PageKind, Settings

__all__ = [
    "ClusterSite",
    "Ground",
    "MaybeAccepted",
    "NotAccepted",
    "Post",
    "Rights",
    "SiteRules",
    "contracts",
    "open_clusters",
    "open_pager",
    "registry",
]


def _wait(span: timedelta) -> None:
    time.sleep(span.total_seconds())


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSite:
    """The hands of one cluster."""

    cluster: ClusterHands
    nodes: NodeHands
    access_faults: Callable[[NodeName], tuple[str, ...]] | None = None
    """What is wrong with the way to one node; None where no node is reached over the network."""
    vantage: Vantage | None = None
    """Other places from which a silent host is asked."""
    power: PowerHands = field(default_factory=NoPower)
    pause: Callable[[timedelta], None] = _wait
    """Waits in the calling worker thread."""
    history: ReasonHistory | None = None
    """Who wrote which Reason, where accounting can be asked."""
    canary: CanaryHands | None = None
    canary_rules: CanaryRules | None = None
    """What the site says of its canary, where it has one."""
    changes: NodeChanges | None = None
    """Writes beyond drain and return, where the back end has them."""
    jobs: JobHands | None = None
    """Jobs and reservations, where its back end can write them."""
    units: frozenset[str]
    close: Callable[[], None]
    faults: Callable[[], tuple[str, ...]] = tuple
    """Why the bot must not act on it, asked at start. Raises Unreadable."""
    rights: Callable[[], Rights] = Rights
    """What the bot's user lacks, as far as that shows without acting."""
    remarks: Callable[[], tuple[str, ...]] = tuple
    """What `doctor` should say of how the cluster is read; asks nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRules:
    """What the verbs must know of the site beside its clusters."""

    hands_off: Callable[[ClusterName, NodeName], str]
    """Why no runbook may touch this node; empty if it may."""
    pool: Callable[[ClusterName, NodeName], frozenset[NodeName]]
    """The nodes that share a budget with this one."""
    boot_time: Callable[[ClusterName, NodeName], timedelta | None] = lambda _cluster, _node: None
    """How long a boot takes in the pool of this node; None where the site has not said."""
    restartable: Callable[[ClusterName], Sequence[Restartable]] = lambda _cluster: ()
    """Which jobs go on from a checkpoint, as the site says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What every area stands on: made once for the process."""

    clock: Clock
    redactor: Redactor
    runner: Runner
    secrets: SecretStore
    pause: Callable[[timedelta], None]
    """Waits in the calling worker thread."""
    os_user: str
    """The bot's own."""


DEFAULT_SLURM_CONF = "/etc/slurm/slurm.conf"


def open_cluster(name: ClusterName, settings: Cluster, ground: Ground) -> ClusterSite:
    """Hands for one configured cluster; asks no controller yet."""
    if settings.kind is ClusterKind.SIMULATED and settings.simulated_socket is not None:
        line = Line(path=settings.simulated_socket, redactor=ground.redactor)
        simulated = SimulatedCluster(name=name, line=line)
        return ClusterSite(
            cluster=simulated,
            history=simulated,
            changes=simulated,
            canary=SimulatedCanary(line=line)
            if settings.canary is None
            else SimulatedCanary(line=line, user=settings.canary.user),
            canary_rules=rules_of(settings.canary),
            jobs=simulated,
            nodes=SimulatedNodes(line=line),
            vantage=SimulatedVantage(line=line),
            power=SimulatedPower(line=line) if settings.power else NoPower(),
            pause=ground.pause,
            units=frozenset(settings.units),
            close=_nothing,
        )
    slurm = SlurmSettings(
        cluster=name,
        slurm_conf=str(settings.slurm_conf or DEFAULT_SLURM_CONF),
        path=f"{settings.slurm_binaries}:/usr/bin:/bin",
        own_user=ground.os_user,
        backend=settings.backend.value,
    )
    cluster = SlurmCli(slurm, ground.runner, ground.clock, ground.pause)
    remote = _remote(settings, ground)
    return ClusterSite(
        cluster=cluster,
        history=AccountingHistory(slurm, ground.runner, ground.clock, ground.pause),
        changes=cluster,
        canary=open_canary(settings.canary, slurm.environment, ground.runner),
        canary_rules=rules_of(settings.canary),
        jobs=cluster,
        nodes=remote.nodes,
        access_faults=remote.access_faults,
        vantage=remote.vantage,
        power=open_power(settings.power, ground.runner, ground.secrets),
        pause=ground.pause,
        units=frozenset(settings.units),
        close=remote.close,
        faults=cluster.faults,
        rights=lambda: rights(slurm, ground.runner, _changing()),
        remarks=cluster.remarks,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Remote:
    """The nodes of a real cluster, and the ways to look at them."""

    nodes: NodeHands
    vantage: Vantage | None = None
    access_faults: Callable[[NodeName], tuple[str, ...]] | None = None
    close: Callable[[], None]


def _remote(settings: Cluster, ground: Ground) -> _Remote:
    """Hands on the nodes of a real cluster; none where the site configured no way to them."""
    if settings.ssh_config is None:
        return _Remote(nodes=UnreachedNodes(), close=_nothing)
    hosts = settings.reference_hosts
    remote = RemoteSettings(
        ssh_config=settings.ssh_config,
        units=frozenset(settings.units),
        access=settings.node_access,
    )
    nodes = RemoteNodes(
        remote,
        ground.runner,
        ground.clock,
        redact=ground.redactor.text,
        connected=lambda: reaches_any(hosts),
    )
    vantage = RemoteVantage(
        known_ports=settings.known_ports, reference_hosts=hosts, tried_by=nodes.ports_tried
    )
    check = AccessCheck(nodes, remote, ground.runner)
    return _Remote(nodes=nodes, vantage=vantage, access_faults=check.faults, close=nodes.close)


def _nothing() -> None:
    """Nothing was started, so nothing is ended."""


def open_clusters(settings: Settings, ground: Ground) -> Mapping[ClusterName, ClusterSite]:
    """Hands for every configured cluster."""
    return {
        ClusterName(name): open_cluster(ClusterName(name), cluster, ground)
        for name, cluster in settings.clusters.items()
    }


def open_pager(settings: Settings, ground: Ground, mention: Callable[[PageBackend], Post]) -> Pager:
    """The chain of ways to wake somebody, in the configured order; `mention` posts to Slack."""
    backends: list[Backend] = []
    for index, entry in enumerate(settings.pages, 1):
        name = f"{index}-{entry.kind.value}"
        endpoint = Endpoint(url=entry.url or "", token=entry.token)
        match entry.kind:
            case PageKind.ALERTMANAGER:
                backends.append(
                    AlertmanagerPager(
                        name=name, endpoint=endpoint, secrets=ground.secrets, clock=ground.clock
                    )
                )
            case PageKind.WEBHOOK:
                backends.append(
                    WebhookPager(
                        name=name, endpoint=endpoint, secrets=ground.secrets, clock=ground.clock
                    )
                )
            case PageKind.SLACK:
                backends.append(SlackMention(name=name, post=mention(entry)))
    return PagerChain(backends, ground.clock)


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
        settings=JobSettings(hands_off=lambda *_: "", spare=idle_spare),
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


def _changing() -> Mapping[str, bool]:
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
    settings = NodeSettings(hands_off=rules.hands_off, pool=rules.pool, boot_time=rules.boot_time)
    history = site.history
    return NodeVerbs(
        clusters=clusters,
        nodes=site.nodes,
        vantage=site.vantage,
        settings=settings,
        histories={} if history is None else {site.cluster.name: history},
        changes={} if site.changes is None else {site.cluster.name: site.changes},
    )


def _canary_hands(clusters: Mapping[ClusterName, ClusterHands], site: ClusterSite) -> CanaryVerbs:
    name, canary, rules = site.cluster.name, site.canary, site.canary_rules
    return CanaryVerbs(
        clusters=clusters,
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
            hands_off=rules.hands_off, spare=idle_spare, restartable=rules.restartable(name)
        ),
        pause=site.pause,
        powers={name: site.power},
    )


def _power_hands(
    clusters: Mapping[ClusterName, ClusterHands], site: ClusterSite, rules: SiteRules
) -> PowerVerbs:
    return PowerVerbs(
        clusters=clusters,
        eyes=Eyes(nodes=site.nodes, vantage=site.vantage),
        power=site.power,
        settings=PowerSettings(hands_off=rules.hands_off),
        pause=site.pause,
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
