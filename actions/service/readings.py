"""Reads what a start or restart is decided on. Raises Unreadable where it would be a guess.

Used by `actions.service.verbs`. Changes nothing.
"""

from dataclasses import dataclass

from actions.cluster import Job, Node, Snapshot
from actions.contract import Call, Refusal, UnknownNode, Unreadable
from actions.ownership import UNKNOWN_BOOT, Holder, Holding, Scene, holding
from actions.remote_values import HostFacts, Reach, Reachability, Service, ServiceState
from actions.service.rules import Restart
from actions.service.settings import Hands
from actions.settling import just_started, settles_at
from config.node_names import NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was read."""

    node: Node
    jobs: tuple[Job, ...]
    jobs_blind: str
    reach: Reachability
    service: Service
    facts: HostFacts | None
    holding: Holding
    blocked: str
    """Why nothing may be done here at all; empty if something may."""

    @property
    def offset_ms(self) -> int:
        """Node clock minus bot clock."""
        return clock_offset(self.facts)

    def for_restart(self, hands: Hands) -> Restart:
        """What the rules of a restart need of it."""
        return Restart(
            node=self.node,
            jobs=self.jobs,
            jobs_blind=self.jobs_blind,
            service=self.service,
            facts=self.facts,
            is_slurmd=self.service.unit == hands.settings.slurmd_unit,
            largest_clock_offset=hands.settings.largest_clock_offset,
        )


def target(call: Call) -> NodeName:
    """The node of the call. Raises Refusal."""
    if call.node is None:
        raise Refusal("no node named: this action is for one node")
    return call.node


def unit_of(call: Call, hands: Hands) -> str:
    """The unit of the call. Raises Refusal for one that is not in the configuration's list."""
    unit = call.arguments.get("unit")
    if not isinstance(unit, str) or unit not in hands.settings.units:
        raise Refusal(
            f"unit {str(unit)[:60]!r} is not in the list of units of the configuration "
            f"({', '.join(sorted(hands.settings.units)) or 'which is empty'})"
        )
    return unit


def boot_of(facts: HostFacts | None) -> str:
    """The boot id as observations carry it."""
    return facts.boot_id if facts and facts.boot_id else UNKNOWN_BOOT


def clock_offset(facts: HostFacts | None) -> int:
    """Node clock minus bot clock, milliseconds; 0 where it could not be read."""
    return (facts.clock_offset_ms or 0) if facts else 0


def read(call: Call, hands: Hands) -> Seen:
    """Everything about the unit and what a change of it could harm. Raises Unreadable, Refusal."""
    unit, name = unit_of(call, hands), target(call)
    if call.cluster not in hands.clusters:
        raise Refusal(f"no cluster {call.cluster} in the configuration")
    snapshot = _settled_snapshot(call, hands)
    node, (jobs, blind) = fresh_node(call, hands), _jobs(call, hands)
    reach = hands.nodes.reach(name)
    service = Service(unit=unit, state=ServiceState.UNKNOWN, detail=reach.evidence)
    facts: HostFacts | None = None
    if reach.reach is Reach.ALIVE:
        service, facts = hands.nodes.service(name, unit), facts_of(name, hands)
    scene = Scene(
        node=node,
        reservations=snapshot.reservations,
        boot_id=boot_of(facts),
        hands_off=hands.settings.hands_off(call.cluster, name),
    )
    held = holding(scene, call)
    return Seen(
        node=node,
        jobs=jobs,
        jobs_blind=blind,
        reach=reach,
        service=service,
        facts=facts,
        holding=held,
        blocked=_blocked(name, held, reach, service),
    )


def _settled_snapshot(call: Call, hands: Hands) -> Snapshot:
    """Raises Unreadable shortly after a controller start (hands 1)."""
    snapshot = hands.clusters[call.cluster].snapshot()
    until = settles_at(snapshot.controller, hands.settings.quiet_after_start, call.now)
    if until is not None:
        raise Unreadable(just_started(snapshot.controller, until))
    return snapshot


def fresh_node(call: Call, hands: Hands) -> Node:
    """The node now. Raises Unreadable, Refusal."""
    try:
        return hands.clusters[call.cluster].fresh_node(target(call))
    except UnknownNode as error:
        raise Refusal(f"the controller of {call.cluster} knows no node {call.node}") from error


def _jobs(call: Call, hands: Hands) -> tuple[tuple[Job, ...], str]:
    try:
        return hands.clusters[call.cluster].fresh_jobs(target(call)), ""
    except Refusal as error:
        return (), str(error) or "the job list cannot be believed"


def facts_of(node: NodeName, hands: Hands) -> HostFacts | None:
    """What the host says of itself; None when it says nothing."""
    try:
        return hands.nodes.host_facts(node)
    except Unreadable:
        return None


def _blocked(name: NodeName, held: Holding, reach: Reachability, service: Service) -> str:
    """Why nothing may be done here. Raises Unreadable where that cannot be told yet."""
    if held.holder is Holder.OTHER:
        return f"hands off: {held.why}"
    if reach.reach is Reach.NOT_ASKED:
        raise Unreadable(f"{name} could not be asked: {reach.evidence}")
    if reach.reach is not Reach.ALIVE:
        return f"{name} cannot be reached ({reach.reach}): {reach.evidence[:160]}"
    if service.state is ServiceState.UNKNOWN:
        raise Unreadable(f"{service.unit} on {name} was not read: {service.detail[:160]}")
    return ""
