"""What stops or slows the bot: approvals needed, budgets, hourly limits, correlation. Pure.

Each function takes values and answers with a value; the engine calls them inside the transaction
that commits the intent, so that two runs cannot both take the last place.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from actions.cluster import Node, NodeBase, Snapshot
from config.ids import ClusterName
from config.node_names import NodeName, fold
from config.policy import Autonomy, Limits
from runbooks.plan import Plan
from runbooks.policy import Pool


class PlanGate(StrEnum):
    """What a plan waits for."""

    NONE = "none"
    """Nothing: it is carried out."""
    CONFIRM = "confirm"
    """Anybody who may run the runbook, the requester too."""
    APPROVE = "approve"
    """Persons other than the requester."""
    OBSERVE = "observe"
    """It is only told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """Which gate, how many persons, and why, in one sentence."""

    gate: PlanGate
    persons: int
    why: str


def lacking(plan: Plan, cluster: ClusterName, lacks: Callable[[ClusterName, str], str]) -> str:
    """The first right that the bot's own user lacks for a verb of this plan; empty when it has all."""
    verbs = dict.fromkeys(step.action.partition("@")[0] for step in plan.steps)
    return next((why for why in (lacks(cluster, verb) for verb in verbs) if why), "")


def needed(
    plan: Plan, autonomy: Autonomy, limits: Limits, asks: bool = False, lacks: str = ""
) -> Needed:
    """Who must agree to this plan. A step that may be skipped counts as one that is done: later
    nobody is asked about it. `asks`: the runbook itself wants a yes here, whatever is planned.
    `lacks`: a right that is missing, with which nothing is done and nobody is asked in vain (hands 1).
    """
    if not plan.steps and not asks:
        return Needed(gate=PlanGate.NONE, persons=0, why="nothing is done")
    if lacks:
        return Needed(gate=PlanGate.OBSERVE, persons=0, why=lacks)
    if autonomy is Autonomy.OBSERVE:
        return Needed(gate=PlanGate.OBSERVE, persons=0, why="this cause is only observed here")
    wanted = max((_by_jobs(plan, limits), _by_verbs(plan)), key=lambda found: found.persons)
    if wanted.persons:
        return wanted
    if asks:
        return Needed(gate=PlanGate.CONFIRM, persons=1, why="the runbook asks before it goes on")
    if autonomy is Autonomy.PROPOSE:
        return Needed(gate=PlanGate.CONFIRM, persons=1, why="this site wants a person to say go")
    return wanted


def _by_verbs(plan: Plan) -> Needed:
    """What the strictest verb wants, whatever its target (power: two persons, hands 2)."""
    step = max(plan.steps, key=lambda found: found.persons, default=None)
    if step is None or not step.persons:
        return Needed(gate=PlanGate.NONE, persons=0, why="no job ends")
    verb = step.action.partition("@")[0]
    persons = "a person" if step.persons == 1 else f"{step.persons} persons"
    why = f"{verb} is done only where {persons} agree"
    return Needed(gate=PlanGate.APPROVE, persons=step.persons, why=why)


def _by_jobs(plan: Plan, limits: Limits) -> Needed:
    """What the jobs want that would end."""
    ended = plan.jobs_end
    lost = [loss for loss in ended if loss.lost]
    gpus = sum(loss.gpus for loss in ended)
    if lost:
        return Needed(
            gate=PlanGate.APPROVE,
            persons=2,
            why=f"work of {_jobs(len(lost))} would be lost",
        )
    if gpus > limits.gpus_two_persons:
        return Needed(
            gate=PlanGate.APPROVE,
            persons=2,
            why=f"jobs with {gpus} GPUs end, above {limits.gpus_two_persons}",
        )
    if ended:
        return Needed(gate=PlanGate.APPROVE, persons=1, why=f"{_jobs(len(ended))} would end")
    return Needed(gate=PlanGate.NONE, persons=0, why="no job ends")


def _jobs(count: int) -> str:
    return f"{count} job{'' if count == 1 else 's'}"


def over_budget(
    pool: Pool, nodes: Mapping[NodeName, Node], reserved: Iterable[NodeName], more: NodeName
) -> str:
    """Why `more` may not be taken out of its pool too; the empty string when it may.

    `reserved` are nodes that our open intents and marks hold, which the snapshot may not show yet.
    Whoever took a node out, it counts (design, promise 6).
    """
    if more in nodes and nodes[more].out:
        return ""  # it is out already: taking it over the counter adds nothing
    held = frozenset(reserved)
    out = {
        name
        for name in pool.nodes - pool.rma
        if name != more and (name in held or (name in nodes and nodes[name].out))
    }
    if len(out) + 1 <= pool.max_out:
        return ""
    return (
        f"pool {pool.name} has {len(out)} of {len(pool.nodes - pool.rma)} nodes out "
        f"({fold(sorted(out))}) and may have {pool.max_out}: {more} stays in"
    )


def over_hourly(most: int, in_last_hour: int, scope: str) -> str:
    """Why another action that can end a job must wait; the empty string when it need not."""
    if in_last_hour < most:
        return ""
    return (
        f"{in_last_hour} actions that can end a job in the last hour {scope}, the limit is {most}"
    )


def correlated(
    snapshot: Snapshot, node: NodeName, limits: Limits, now: datetime
) -> tuple[NodeName, ...]:
    """Nodes that dropped together with `node`: enough of them are one incident, not many repairs.

    Together means: a node that does not answer or went down within the window, of the same rack
    (a common feature) or with the same first segment of the Reason.
    """
    me = snapshot.nodes.get(node)
    if me is None:
        return ()
    dropped = [
        other
        for other in snapshot.nodes.values()
        if _dropped(other, limits, now) and (other.name == node or _alike(me, other))
    ]
    names = {other.name for other in dropped} | {node}
    return tuple(sorted(names)) if len(names) >= limits.correlated_nodes else ()


def _dropped(node: Node, limits: Limits, now: datetime) -> bool:
    """Whether it fell out recently, by itself: a drain by a person is no fault."""
    if node.base is not NodeBase.DOWN:
        return not node.responding
    return node.reason_at is not None and now - node.reason_at <= limits.correlated_within


def _alike(one: Node, other: Node) -> bool:
    """Whether the two share a rack, a switch or a Reason, or both do not answer in one partition."""
    first = one.reason.split(" : ")[0]
    return (
        bool(one.features & other.features)
        or (bool(first) and first == other.reason.split(" : ")[0])
        or bool(one.partitions & other.partitions)
    )
