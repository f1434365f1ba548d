"""The composition root: from settings to a bot that runs. Nothing else constructs.

`open_bot` makes everything and starts nothing; `Bot.start` begins to act. Tests hand in their own
clock, and nothing more.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from threading import Thread

from actions.catalogue import ClusterSite, Ground, SiteRules, open_clusters, registry
from actions.hands import Page, Pager
from audit_log.anchoring import Anchoring
from audit_log.anchors import Anchor, AnchorSink, FileSink, refuse_ahead
from audit_log.errors import StoreFailed
from audit_log.gate import Gate
from audit_log.ledger import Ledger
from audit_log.people import People
from audit_log.records import Event, EventKind
from bot.anchor_command import CommandSink
from bot.answers import Answers
from bot.audit_answers import AuditAnswers
from bot.cluster_checks import ClusterChecks
from bot.commands import Verb
from bot.desk import Desk
from bot.diagnostics import Doctor, Finding
from bot.identities import Identities
from bot.inventory import Inventory
from bot.left_marks import LeftMarks
from bot.left_nodes import LeftNodes
from bot.named_pager import NamedPager
from bot.node_checks import NodeChecks, NodeFaults
from bot.pools import Pools
from bot.rights import StepRights
from config.actors import ENGINE
from config.ids import ClusterName, InstanceId
from config.json_values import JsonMap
from config.node_names import NodeName
from config.people import Directory
from config.settings import Settings
from config.steady_clock import SteadyClock
from config.version import VERSION
from runbooks.anchor_watch import AnchorWatch
from runbooks.builtin import BUILTINS
from runbooks.duties import Duties, Duty
from runbooks.engine import Engine
from runbooks.halt import HaltFile
from runbooks.halt_watch import HaltWatch
from runbooks.library_files import SHIPPED, load_library
from runbooks.mark_watch import MarkWatch
from runbooks.paging import DEADLINE, Paging
from runbooks.partition_watch import PartitionWatch
from runbooks.parts import Parts
from runbooks.policy import Policy
from runbooks.projection import RunProjector
from runbooks.reservation_watch import ReservationWatch
from runbooks.uplink_watch import UplinkWatch
from runbooks.worker import Worker

CLUSTERS = timedelta(minutes=5)
"""For duties that ask every cluster in turn, each of which may be silent up to its own limit."""
LONGEST_READ = 10.0
"""Seconds for the end of an anchor file at the start."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bot:
    """Everything, wired."""

    settings: Settings
    parts: Parts
    desk: Desk
    answers: Answers
    identities: Identities
    inventory: Inventory
    gate: Gate
    worker: Worker
    paging: Paging
    anchoring: Anchoring
    doctor: Doctor
    sites: Mapping[ClusterName, ClusterSite]

    def start(self) -> None:
        """Begin to act: look at the clusters once, then let the worker go on."""
        self.anchoring.anchor_now()  # from its first moment on, the log can be held against something
        self.inventory.refresh()
        self.worker.start()

    def close(self) -> None:
        """Finish or park at step boundaries, anchor, and let go of the ledger."""
        self.worker.stop()
        self.paging.close()
        self.gate.close()
        _record(self.parts.ledger, EventKind.STOPPED)
        self.anchoring.anchor_now()
        for site in self.sites.values():
            site.close()
        self.parts.ledger.close()


def open_bot(settings: Settings, ground: Ground, pager: Pager) -> Bot:
    """Wire everything. Raises StoreRefused, ClusterRefused, Problems: each says why it cannot start."""
    folder = settings.bot.data_folder
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    steady = SteadyClock(ground.clock)
    ground = replace(ground, clock=steady)
    ledger = Ledger.open(
        folder / "nodewarden.db",
        clock=steady,
        redactor=ground.redactor,
        projectors=(RunProjector(),),
        on_store_failure=lambda failure: _page_failing_store(pager, failure),
    )
    try:
        return _wire(settings, ledger, ground, pager, steady)
    except BaseException:
        ledger.close()
        raise


@dataclass(frozen=True, slots=True, kw_only=True)
class _Below:
    """What the engine's parts and everything above them are made over."""

    settings: Settings
    ledger: Ledger
    ground: Ground
    sites: Mapping[ClusterName, ClusterSite]
    inventory: Inventory
    identities: Identities
    gate: Gate
    anchoring: Anchoring


def _anchoring(settings: Settings, ledger: Ledger, ground: Ground) -> Anchoring:
    """Raises ChainBroken where an anchor that can be read contradicts the ledger."""
    files = tuple(FileSink(path) for path in settings.anchors.files)
    for file in files:
        refuse_ahead(ledger, _known(file, ledger.instance))
    commands = (CommandSink(argv, ground.runner) for argv in settings.anchors.commands)
    sinks: tuple[AnchorSink, ...] = (*files, *commands)
    wanted = settings.anchors
    anchoring = Anchoring(ledger, ground.clock, sinks, wanted.interval, wanted.records)
    anchoring.tell = AnchorWatch(ledger).tell
    return anchoring


def _known(file: FileSink, instance: InstanceId) -> tuple[Anchor, ...]:
    """The newest anchors of a file. One that cannot be read, or not now, keeps no bot from starting:
    a cluster may need it, and the file is said to be in trouble from the first delivery on.
    """
    found: list[Anchor] = []

    def read() -> None:
        try:
            newest = file.recent()
            mine = any(anchor.instance == instance for anchor in newest)
            found.extend(newest if mine else file.read())  # another bot's may stand behind them
        except OSError as problem:
            log.warning("anchor %s cannot be compared: %s", file.name, problem)

    reader = Thread(target=read, daemon=True)
    reader.start()
    reader.join(LONGEST_READ)
    if reader.is_alive():
        log.warning("anchor %s cannot be compared: it does not answer", file.name)
    return tuple(found)


def _wire(
    settings: Settings, ledger: Ledger, ground: Ground, pager: Pager, steady: SteadyClock
) -> Bot:
    clock = ground.clock
    anchoring = _anchoring(settings, ledger, ground)
    sites = open_clusters(settings, ground)
    inventory = Inventory({name: site.cluster for name, site in sites.items()})
    checks = ClusterChecks(sites, inventory, clock, ground.os_user)
    checks.refuse_faulty()
    identities = Identities(Directory(settings), People(ledger))
    below = _Below(
        settings=settings,
        ledger=ledger,
        ground=ground,
        sites=sites,
        inventory=inventory,
        identities=identities,
        gate=Gate(ledger, clock, settings.all_roles, identities.os_user),
        anchoring=anchoring,
    )
    parts = _parts(below, pager, checks)
    doctor = Doctor(settings, parts, inventory, anchoring)
    doctor.doors.append(checks.findings)
    ways = NodeChecks(_access(sites), inventory, clock)
    doctor.doors.append(ways.findings)
    answers = _answers(below, parts, anchoring, doctor)
    left = LeftNodes(ledger, inventory.snapshot)
    doctor.doors.append(left.findings)
    answers.notices.append(left.lines)
    marks = LeftMarks(ledger, inventory.clusters, inventory.snapshot)
    doctor.doors.append(marks.findings)
    answers.notices.append(marks.lines)
    paging = Paging(ledger, NamedPager(pager=pager, named=identities.named), clock)
    duties = _duties(below, parts, paging, anchoring, (checks, ways))
    answers.notices.append(duties.hanging)
    answers.notices.append(lambda: tuple(f"ANCHOR {why}" for why in anchoring.status().failing))
    doctor.doors.append(lambda: tuple(Finding(False, said) for said in duties.hanging()))
    worker = Worker(parts, Engine(parts), steady, duties)
    answers.wake = worker.wake
    _record(ledger, EventKind.CONFIG_LOADED, {"policy": settings.policy.digest()})
    _record(ledger, EventKind.STARTED, {"version": VERSION})
    return Bot(
        settings=settings,
        parts=parts,
        desk=Desk(parts, below.gate, inventory, answers, worker.changed),
        answers=answers,
        identities=identities,
        inventory=inventory,
        gate=below.gate,
        worker=worker,
        paging=paging,
        anchoring=anchoring,
        doctor=doctor,
        sites=sites,
    )


_Checks = tuple[ClusterChecks, NodeChecks]


def _access(sites: Mapping[ClusterName, ClusterSite]) -> Mapping[ClusterName, NodeFaults]:
    """Clusters whose nodes are reached over the network."""
    found = {name: site.access_faults for name, site in sites.items()}
    return {name: faults for name, faults in found.items() if faults is not None}


def _duties(
    below: _Below, parts: Parts, paging: Paging, anchoring: Anchoring, checks: _Checks
) -> Duties:
    """What is done beside the runs, again and again."""
    ledger, clock, inventory = parts.ledger, parts.clock, below.inventory
    return Duties(
        (
            Duty("watching the halt file", HaltWatch(ledger, parts.halt).tick),
            Duty("reading the clusters", inventory.refresh, CLUSTERS),
            Duty("sending pages", paging.tick),
            Duty("anchoring the audit log", anchoring.tick),
            Duty("counting refusals", below.gate.flush),
            Duty("watching drains", MarkWatch(ledger, clock, inventory.snapshot).tick),
            Duty("watching reservations", _reservations(below).tick),
            Duty("watching partitions", PartitionWatch(ledger, clock, inventory.snapshot).tick),
            Duty("trying the reference hosts", _uplinks(below).tick, CLUSTERS),
            Duty("checking the bot's rights", checks[0].tick, CLUSTERS),
            Duty("checking the way to nodes", checks[1].tick, CLUSTERS),
        ),
        ledger,
        clock,
    )


def _uplinks(below: _Below) -> UplinkWatch:
    """What notices that the bot itself is cut off."""
    places = {name: site.vantage for name, site in below.sites.items()}
    asked = {name: place.references for name, place in places.items() if place is not None}
    return UplinkWatch(below.ledger, below.ground.clock, asked)


def _reservations(below: _Below) -> ReservationWatch:
    """What compares our reservations with those of the clusters."""
    inventory = below.inventory
    return ReservationWatch(
        below.ledger, below.ground.clock, inventory.snapshot, tuple(inventory.clusters())
    )


def _parts(below: _Below, pager: Pager, checks: ClusterChecks) -> Parts:
    """What the engine is made of."""
    settings, ledger, clock = below.settings, below.ledger, below.ground.clock
    pools = Pools(settings, clock, below.inventory.snapshot)
    protected = {
        ClusterName(name): frozenset(cluster.protected)
        for name, cluster in settings.clusters.items()
    }
    rules = SiteRules(
        hands_off=Labels(ledger, protected).why,
        pool=pools.nodes,
        boot_time=pools.boot_time,
        restartable=lambda name: settings.clusters[name].restartable,
    )
    verbs = registry(below.sites, rules, pager)
    specs = {**{name: action.spec for name, action in verbs.items()}, **BUILTINS}
    return Parts(
        ledger=ledger,
        artefacts=ledger.artefacts,
        registry=verbs,
        specs=specs,
        clusters={name: site.cluster for name, site in below.sites.items()},
        library=load_library([SHIPPED, *settings.bot.runbooks], specs),
        policy=Policy(
            site=settings.policy, protected=protected, pool_of=pools.of, lacks=checks.lacks
        ),
        rights=StepRights(below.gate, below.identities, below.inventory),
        halt=HaltFile(settings.bot.data_folder / "halt"),
        clock=clock,
        before_end=below.anchoring.before_end,
    )


def _answers(below: _Below, parts: Parts, anchoring: Anchoring, doctor: Doctor) -> Answers:
    """The reading half of the desk."""
    audit = AuditAnswers(parts, below.identities, anchoring, below.settings.anchors.files)
    others = {Verb.AUDIT: audit.answer, Verb.DOCTOR: lambda _command: doctor.examine()}
    return Answers(parts, below.gate, below.identities, below.inventory, others)


def _page_failing_store(pager: Pager, failure: StoreFailed) -> None:
    """The one page that is sent without a record: the store itself cannot take one (design 4)."""
    page = Page(
        key="nodewarden/store",
        summary=f"nodewarden cannot write its audit log, no new action begins: {failure}"[:200],
    )
    sender = Thread(target=pager.send, args=(page,), kwargs={"deadline": DEADLINE}, daemon=True)
    sender.start()


def _record(ledger: Ledger, kind: EventKind, data: JsonMap | None = None) -> None:
    event = Event(kind=kind, actor=ENGINE.id, data=data or {})
    ledger.commit(lambda transaction: transaction.append(event))


class Labels:
    """Why a node is off limits: protected by the settings, or labelled hands-off by a person."""

    def __init__(
        self, ledger: Ledger, protected: Mapping[ClusterName, frozenset[NodeName]]
    ) -> None:
        """Reads the ledger at each question."""
        self._ledger = ledger
        self._protected = protected

    def why(self, cluster: ClusterName, node: NodeName) -> str:
        """The sentence, or the empty string."""
        if node in self._protected.get(cluster, frozenset()):
            return f"{node} is a protected host: no runbook acts on it"
        rows = self._ledger.query(
            "SELECT why FROM hands_off WHERE cluster = ? AND node = ?", (cluster, node)
        )
        return f"{node} is labelled hands-off by {rows[0][0]}" if rows else ""
