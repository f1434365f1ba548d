"""Reads what the verbs on jobs decide on. Raises Unreadable where a decision would be a guess.

Used by every verb of this area. Changes nothing.
"""

from actions.cluster import Job, Node, Snapshot
from actions.contract import Call, Refusal, UnknownJob, UnknownNode, Unreadable
from actions.hands import ClusterHands, JobHands
from actions.job.settings import Hands
from actions.power_hands import PowerState
from actions.settling import just_started, settles_at
from config.ids import JobId
from config.node_names import NodeName, fold

ENDED = frozenset(
    "COMPLETED CANCELLED FAILED TIMEOUT NODE_FAIL PREEMPTED BOOT_FAIL DEADLINE OUT_OF_MEMORY "
    "REVOKED".split()
)
"""States out of which a job does not come back by itself."""


def cluster_of(call: Call, hands: Hands) -> ClusterHands:
    """The cluster of the call. Raises Refusal."""
    if call.cluster not in hands.clusters:
        raise Refusal(f"no cluster {call.cluster} in the configuration")
    return hands.clusters[call.cluster]


def job_hands(call: Call, hands: Hands) -> JobHands:
    """The hands on its jobs. Raises Refusal."""
    if call.cluster not in hands.jobs:
        raise Refusal(f"no cluster {call.cluster} in the configuration whose jobs can be reached")
    return hands.jobs[call.cluster]


def job_named(call: Call) -> JobId:
    """The job of the call. Raises Refusal."""
    named = call.arguments.get("job")
    if not isinstance(named, str):
        raise Refusal("no job named: this action is for one job")
    return JobId(named)


def node_named(call: Call) -> NodeName:
    """The node that the job is to leave. Raises Refusal."""
    if call.node is None:
        raise Refusal("no node named: this action is for a job on one node")
    return call.node


def settled_snapshot(call: Call, hands: Hands) -> Snapshot:
    """A snapshot that may be acted on. Raises Unreadable shortly after a controller start."""
    snapshot = call.seen.snapshot if call.seen else cluster_of(call, hands).snapshot()
    until = settles_at(snapshot.controller, hands.settings.quiet_after_start, call.now)
    if until is not None:
        raise Unreadable(just_started(snapshot.controller, until))
    return snapshot


def fresh_job(call: Call, hands: Hands) -> Job:
    """The job past any cache. Raises Unreadable, Refusal."""
    try:
        return job_hands(call, hands).fresh_job(job_named(call))
    except UnknownJob as error:
        raise Refusal(f"{call.cluster}: {error}") from error


def fresh_node(call: Call, hands: Hands) -> Node:
    """The node that the job is to leave, past any cache. Raises Unreadable, Refusal."""
    try:
        return cluster_of(call, hands).fresh_node(node_named(call))
    except UnknownNode as error:
        raise Refusal(f"the controller of {call.cluster} knows no node {call.node}") from error


def blindness(call: Call, hands: Hands, snapshot: Snapshot) -> str:
    """Why the job list cannot be believed; empty when it can. Raises Unreadable."""
    if snapshot.blind:
        return "; ".join(snapshot.blind)
    try:
        cluster_of(call, hands).fresh_jobs(node_named(call))
    except (Refusal, UnknownNode) as error:
        return str(error) or "the job list cannot be believed"
    return ""


def may_still_write(call: Call, hands: Hands, node: Node) -> str:
    """Why old ranks on a silent node may go on writing; empty where slurmd answers, or the power is
    off: read twice, because one "off" proves nothing (hands 2).
    """
    if node.responding and node.base.value not in {"DOWN", "UNKNOWN"}:
        return ""
    power, said = hands.powers.get(call.cluster), "no way to its power is configured"
    if power is not None:
        try:
            readings = [power.status(node.name)]
            hands.pause(hands.settings.between_readings)
            readings.append(power.status(node.name))
        except (Unreadable, Refusal) as error:
            said = f"its power cannot be read: {str(error)[:120]}"
        else:
            if all(reading.state is PowerState.OFF for reading in readings):
                return ""
            said = f"its power reads {' and '.join(reading.state for reading in readings)}"
    return (
        f"{node.name} is {node.state} and not proven to be off ({said}): not answering is not dead, "
        "its ranks may still write"
    )


def state_text(job: Job) -> str:
    """State, restarts and nodes: unchanged means that no requeue and no start happened."""
    where = f" on {fold(job.nodes)}" if job.nodes else ""
    return f"{job.state} Restarts {job.restarts}{where}"
