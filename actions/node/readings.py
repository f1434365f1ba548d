"""Reads what the verbs on nodes decide on. Raises Unreadable where a decision would be a guess.

Used by every verb of this area. Changes nothing; a part that may be missing is None or empty.
"""

from dataclasses import dataclass

from actions.cluster import Job, Node, Overview, Snapshot
from actions.contract import Call, Refusal, UnknownNode, Unreadable
from actions.hands import ClusterHands
from actions.node.settings import Hands
from actions.ownership import RESERVATION_KIND, UNKNOWN_BOOT, Scene
from actions.remote_values import HostFacts
from actions.settling import just_started, settles_at
from config.node_names import NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """The jobs on a node, or why the list cannot be believed."""

    jobs: tuple[Job, ...] = ()
    blind: str = ""


def target(call: Call) -> NodeName:
    """The node of the call. Raises Refusal."""
    if call.node is None:
        raise Refusal("no node named: this action is for one node")
    return call.node


def cluster_of(call: Call, hands: Hands) -> ClusterHands:
    """The cluster of the call. Raises Refusal."""
    try:
        return hands.clusters[call.cluster]
    except KeyError:
        raise Refusal(
            f"no cluster {call.cluster} in the configuration: name one of "
            f"{', '.join(sorted(hands.clusters))}"
        ) from None


def settled_snapshot(call: Call, hands: Hands) -> Snapshot:
    """A snapshot that may be acted on. Raises Unreadable shortly after a controller start."""
    snapshot = call.seen.snapshot if call.seen else cluster_of(call, hands).snapshot()
    until = settles_at(snapshot.controller, hands.settings.quiet_after_start, call.now)
    if until is not None:
        raise Unreadable(just_started(snapshot.controller, until))
    return snapshot


def fresh_node(call: Call, hands: Hands) -> Node:
    """The node past any cache, or as it was seen for a whole plan. Raises Unreadable, Refusal."""
    node = target(call)
    try:
        if call.seen:
            return _seen_node(call.seen, node)
        return cluster_of(call, hands).fresh_node(node)
    except UnknownNode as error:
        raise Refusal(f"the controller of {call.cluster} knows no node {node}") from error


def _seen_node(seen: Overview, node: NodeName) -> Node:
    if node not in seen.snapshot.nodes:
        raise UnknownNode(node)
    return seen.snapshot.nodes[node]


def fresh_jobs(call: Call, hands: Hands) -> Jobs:
    """Jobs on the node past any cache; a list that proves to be blind is said to be so."""
    if call.seen:
        blind = "; ".join(call.seen.snapshot.blind)
        return Jobs(jobs=call.seen.jobs.get(target(call), ()) if not blind else (), blind=blind)
    try:
        return Jobs(jobs=cluster_of(call, hands).fresh_jobs(target(call)))
    except (Refusal, UnknownNode) as error:
        return Jobs(blind=str(error) or "the job list cannot be believed")


def host_facts(call: Call, hands: Hands) -> HostFacts | None:
    """What the host says of itself; None when it says nothing."""
    try:
        return hands.nodes.host_facts(target(call))
    except Unreadable:
        return None


def boot_id(call: Call, hands: Hands) -> str:
    """The boot id as observations carry it. Where a whole plan looks, its hosts are asked together."""
    node, seen = target(call), call.seen
    if seen is None:
        found = hands.nodes.boot_ids((node,))
    else:
        if node not in seen.boots:
            seen.boots.update(hands.nodes.boot_ids(seen.targets or (node,)))
        found = seen.boots
    return found[node].value or UNKNOWN_BOOT if node in found else UNKNOWN_BOOT


def boot_of(facts: HostFacts | None) -> str:
    """The boot id as observations carry it."""
    return facts.boot_id if facts and facts.boot_id else UNKNOWN_BOOT


def _reserved(call: Call) -> bool:
    return any((mark.kind, mark.run) == (RESERVATION_KIND, call.run) for mark in call.marks)


def scene(call: Call, hands: Hands, snapshot: Snapshot, node: Node, boot_id: str) -> Scene:
    """What ownership is judged from. Raises Unreadable."""
    held = call.seen.reservations.get(node.name, ()) if call.seen else snapshot.reservations
    # One that this very run made a second ago may not be in the snapshot, which others share.
    if not call.seen and call.cluster in hands.jobs and _reserved(call):
        held = hands.jobs[call.cluster].fresh_reservations()
    return Scene(
        node=node,
        reservations=held,
        boot_id=boot_id,
        hands_off=hands.settings.hands_off(call.cluster, node.name),
    )
