"""Constructs every area of `actions/` from the settings: the only place that knows them all.

Called by `bot.wiring`. What it hands out is the contract's Protocols and one `Action` for each verb;
each verb finds the hands of the cluster that its call names.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from actions.canary.of_site import open_canary, rules_of
from actions.hands import NodeHands, Pager
from actions.node_readings import NodeReadings
from actions.page.alertmanager import AlertmanagerPager
from actions.page.backends import Backend, MaybeAccepted, NotAccepted
from actions.page.chain import PagerChain
from actions.page.post import Endpoint
from actions.page.slack_mention import Post, SlackMention
from actions.page.webhook import WebhookPager
from actions.power.doors import open_power
from actions.power.unpowered import NoPower
from actions.registry import changing, contracts, registry
from actions.remote.access_check import AccessCheck
from actions.remote.nodes import RemoteNodes
from actions.remote.reference import reaches_any
from actions.remote.settings import RemoteSettings
from actions.remote.unreached import UnreachedNodes
from actions.remote.vantage import RemoteVantage
from actions.shell import Runner
from actions.simulated.canary import SimulatedCanary
from actions.simulated.client import Line, SimulatedCluster, SimulatedNodes
from actions.simulated.power import SimulatedPower, SimulatedVantage
from actions.site import ClusterSite, SiteRules
from actions.slurm.cli import SlurmCli
from actions.slurm.history import AccountingHistory
from actions.slurm.rights import Rights, rights
from actions.slurm.tools import SlurmSettings
from actions.spares import NO_SPARES, SpareRules
from actions.vantage import Vantage
from config.clock import Clock
from config.ids import ClusterName
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
            spares=_spare_rules(settings),
            jobs=simulated,
            nodes=SimulatedNodes(line=line),
            readings=SimulatedNodes(line=line),
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
        spares=_spare_rules(settings),
        canary_rules=rules_of(settings.canary),
        jobs=cluster,
        nodes=remote.nodes,
        readings=remote.readings,
        access_faults=remote.access_faults,
        vantage=remote.vantage,
        power=open_power(settings.power, ground.runner, ground.secrets),
        pause=ground.pause,
        units=frozenset(settings.units),
        close=remote.close,
        faults=cluster.faults,
        rights=lambda: rights(slurm, ground.runner, changing()),
        remarks=cluster.remarks,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Remote:
    """The nodes of a real cluster, and the ways to look at them."""

    nodes: NodeHands
    readings: NodeReadings | None = None
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
    return _Remote(
        nodes=nodes,
        readings=nodes,
        vantage=vantage,
        access_faults=check.faults,
        close=nodes.close,
    )


def _spare_rules(settings: Cluster) -> SpareRules:
    """What the site says of its spares."""
    spares = settings.spares
    if spares is None:
        return NO_SPARES
    return SpareRules(
        nodes=frozenset(spares.nodes),
        features=spares.features,
        partition_edit=spares.partition_edit,
    )


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
