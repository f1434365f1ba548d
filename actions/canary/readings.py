"""Reads what the verbs on canaries decide on. Raises Unreadable where a decision would be a guess."""

from actions.canary.settings import CanaryRules, Hands
from actions.cluster import Node, Reservation
from actions.contract import Call, Refusal, UnknownNode
from actions.hands import CanaryHands
from actions.ownership import RESERVATION_KIND
from config.node_names import NodeName


def target(call: Call) -> NodeName:
    """The node of the call. Raises Refusal."""
    if call.node is None:
        raise Refusal("no node named: a canary tries one node")
    return call.node


def reservation_name(call: Call) -> str:
    """The reservation that the arguments name."""
    return str(call.arguments.get("reservation", ""))


def configured(call: Call, hands: Hands) -> tuple[CanaryHands, CanaryRules] | None:
    """The canary of the call's cluster; None where the site has none."""
    found, rules = hands.canaries.get(call.cluster), hands.rules.get(call.cluster)
    return (found, rules) if found is not None and rules is not None else None


def canaries(call: Call, hands: Hands) -> CanaryHands:
    """The hands on canaries. Raises Refusal where the site has none."""
    found = configured(call, hands)
    if found is None:
        raise Refusal(f"no canary configured for {call.cluster}: set `canary:` of that cluster")
    return found[0]


def rules(call: Call, hands: Hands) -> CanaryRules:
    """What the site says of its canary. Raises Refusal where it has none."""
    found = configured(call, hands)
    if found is None:
        raise Refusal(f"no canary configured for {call.cluster}: set `canary:` of that cluster")
    return found[1]


def fresh_node(call: Call, hands: Hands) -> Node:
    """The node now. Raises Unreadable, Refusal."""
    if call.cluster not in hands.clusters:
        raise Refusal(f"no cluster {call.cluster} in the configuration")
    try:
        return hands.clusters[call.cluster].fresh_node(target(call))
    except UnknownNode as error:
        raise Refusal(f"the controller of {call.cluster} knows no node {target(call)}") from error


def held(call: Call, hands: Hands) -> Reservation | None:
    """The reservation of the arguments, as the controller has it; None when it is gone.

    Raises Unreadable, Refusal.
    """
    name = reservation_name(call)
    if call.cluster not in hands.jobs:
        raise Refusal(f"this back end of {call.cluster} cannot read reservations past its cache")
    listed = hands.jobs[call.cluster].fresh_reservations()
    return next((found for found in listed if found.name == name), None)


def is_ours(call: Call) -> bool:
    """Whether this very run made the reservation: the ledger's mark is the proof, not the name."""
    name = reservation_name(call)
    return any(
        (mark.kind, mark.cluster, mark.run, mark.node)
        == (RESERVATION_KIND, call.cluster, call.run, name)
        for mark in call.marks
    )
