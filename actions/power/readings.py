"""Reads what the verbs on power decide on. Raises Unreadable where a decision would be a guess.

Used by every verb of this area. Changes nothing.
"""

from dataclasses import replace

from actions.cluster import Job, Node, Snapshot
from actions.contract import Call, Refusal, UnknownNode, Unreadable
from actions.host_look import look
from actions.job_losses import losses
from actions.ownership import UNKNOWN_BOOT, Scene, holding, our_marks
from actions.power.hands import Hands
from actions.power.rules import Seen
from actions.power_hands import PowerReading, PowerState
from actions.settling import just_started, saved_at, settles_at
from config.node_names import NodeName


def target(call: Call) -> NodeName:
    """The node of the call. Raises Refusal."""
    if call.node is None:
        raise Refusal("no node named: this action is for one node")
    return call.node


def read(call: Call, hands: Hands) -> Seen:
    """Everything about the node, its host and its power. Raises Unreadable, Refusal."""
    name = target(call)
    if call.cluster not in hands.clusters:
        raise Refusal(f"no cluster {call.cluster} in the configuration")
    power = power_of(name, hands)
    snapshot = _settled_snapshot(call, hands)
    node, (jobs, blind) = _node(call, hands), _jobs(call, hands)
    _saved(call)
    reach, verdict = look(hands.eyes, node, snapshot.nodes)
    scene = Scene(
        node=node,
        reservations=snapshot.reservations,
        boot_id=_boot_id(name, hands) if reach.reach.host_alive else UNKNOWN_BOOT,
        hands_off=hands.settings.hands_off(call.cluster, name),
    )
    return Seen(
        node=node,
        jobs=jobs,
        jobs_blind=blind,
        holding=holding(scene, call),
        reach=reach,
        verdict=verdict,
        power=power,
        losses=losses(_now(snapshot, name, jobs), (name,), hands.settings.restartable),
        boot_id=scene.boot_id,
    )


def power_of(node: NodeName, hands: Hands) -> PowerReading:
    """The power; off only where it was read off twice, with a pause between. Raises Unreadable, Refusal.

    Stateless on purpose: what one look had seen would be lost with the process, and a recovery would
    take a single "off" for proof.
    """
    first = hands.power.status(node)
    if first.state is not PowerState.OFF:
        return first
    hands.pause(hands.settings.between_readings)
    second = hands.power.status(node)
    seconds = hands.settings.between_readings.total_seconds()
    if second.state is PowerState.OFF:
        said = f"off twice, {seconds:g} s apart ({second.evidence})"
        return PowerReading(state=PowerState.OFF, evidence=said, source=second.source)
    said = f"off, and {seconds:g} s later {second.state} ({first.evidence} / {second.evidence})"
    return PowerReading(state=PowerState.UNKNOWN, evidence=said, source=second.source)


def _settled_snapshot(call: Call, hands: Hands) -> Snapshot:
    """Raises Unreadable shortly after a controller start (hands 1)."""
    snapshot = hands.clusters[call.cluster].snapshot()
    until = settles_at(snapshot.controller, hands.settings.quiet_after_start, call.now)
    if until is not None:
        raise Unreadable(just_started(snapshot.controller, until))
    return snapshot


def _saved(call: Call) -> None:
    """Raises Unreadable while slurmctld may still forget our drain (hands 1)."""
    marks = our_marks(call, target(call))
    until = saved_at(marks[0], call.now) if marks else None
    if until is not None:
        raise Unreadable(f"slurmctld may not have saved the drain of {target(call)} yet")


def _node(call: Call, hands: Hands) -> Node:
    try:
        return hands.clusters[call.cluster].fresh_node(target(call))
    except UnknownNode as error:
        raise Refusal(f"the controller of {call.cluster} knows no node {call.node}") from error


def _jobs(call: Call, hands: Hands) -> tuple[tuple[Job, ...], str]:
    try:
        return hands.clusters[call.cluster].fresh_jobs(target(call)), ""
    except Refusal as error:
        return (), str(error) or "the job list cannot be believed"


def _now(snapshot: Snapshot, node: NodeName, jobs: tuple[Job, ...]) -> Snapshot:
    """The snapshot with what runs on this node now."""
    fresh = {job.slurm_id for job in jobs}
    rest = (job for job in snapshot.jobs if job.slurm_id not in fresh and node not in job.nodes)
    return replace(snapshot, jobs=(*rest, *jobs))


def _boot_id(node: NodeName, hands: Hands) -> str:
    found = hands.eyes.nodes.boot_ids((node,)).get(node)
    return found.value or UNKNOWN_BOOT if found else UNKNOWN_BOOT
