"""Whether an intent may be committed: everything that is checked inside its own transaction.

Called by `runbooks.journal.Journal.intend` and by nobody else, so that a limit cannot be passed by
two runs at the same moment. Reads projections; the one thing it appends is a limit that was hit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from actions.cluster import Node
from actions.contract import ActionSpec, Observation
from audit_log.ledger import Transaction
from audit_log.records import EventKind
from audit_log.restoration import MAY_ACT
from config.clock import microseconds
from config.ids import InstanceId, PlanHash, RunId
from config.json_values import JsonMap
from config.node_names import NodeName
from runbooks.machine import RunState
from runbooks.next_step import Place
from runbooks.policy import Policy, Pool
from runbooks.rails import over_budget, over_hourly
from runbooks.run import Run
from runbooks.run_events import page_event, run_event
from runbooks.run_rows import load


class Changed(Exception):
    """The run is no longer as the caller saw it; ask again what comes next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """Everything an intent records."""

    place: Place
    spec: ActionSpec
    attempt: int
    seen: Observation
    expires_at: datetime
    pool: Pool | None
    nodes: Mapping[NodeName, Node]
    """Nodes of the snapshot, for the budget."""
    instance: InstanceId
    undoing: bool = False


def may_act(
    run: Run,
    root: RunId,
    transaction: Transaction,
    intent: Intent,
    plan: tuple[RunId, PlanHash] | None,
) -> None:
    """Raise Changed unless this very intent may be committed now."""
    acting = RunState.UNDOING if intent.undoing else RunState.RUNNING
    if run.state is not acting and run.state is not RunState.WAITING:
        raise Changed(f"{run.id} is {run.state}")
    if run.stop_wanted and not intent.undoing:
        raise Changed(f"{run.id} is asked to {run.stop_wanted}")
    if not transaction.query(MAY_ACT, (root,))[0][0]:
        raise Changed(f"{root} is not confirmed since the restore")
    if not intent.undoing:
        _callers_go_on(run, transaction)
    step = run.steps.get(intent.place.key)
    if (step.attempt if step else 0) + 1 != intent.attempt:
        raise Changed(f"{run.id}: another attempt of {intent.place.key}")
    if not intent.undoing:
        if plan is None:
            raise Changed(f"{run.id}: no plan covers {intent.place.key}")
        planner = run if plan[0] == run.id else load(transaction, plan[0])
        if planner.plan is None or planner.plan.hash != plan[1] or not planner.approved:
            raise Changed(f"{run.id}: its plan was voided")
    if intent.place.node is not None:
        atom = f"{run.cluster}/node:{intent.place.node}"
        holders = transaction.query("SELECT run FROM locks WHERE atom = ?", (atom,))
        if [row[0] for row in holders] != [root]:
            raise Changed(f"{run.id} does not hold {atom}")


def _callers_go_on(run: Run, transaction: Transaction) -> None:
    """A called run begins nothing once its caller is stopped, whoever notices it first."""
    while run.parent is not None:
        run = load(transaction, run.parent)
        if not run.state.acts or run.stop_wanted:
            raise Changed(f"its caller {run.id} does not go on")


def intended(intent: Intent) -> dict[str, Any]:
    """What the record of an intent holds."""
    seen = intent.seen
    return {
        "key": intent.place.key,
        "action": f"{intent.spec.name}@{intent.spec.version}",
        "attempt": intent.attempt,
        "arguments": intent.place.arguments,
        "expires_us": microseconds(intent.expires_at),
        "undoing": intent.undoing,
        "mark": intent.spec.sets_mark,
        **marked(intent.spec, intent.place.arguments),
        "may_end_jobs": intent.spec.may_end_jobs,
        "pool": intent.pool.name if intent.pool else None,
        "looked": looked(seen),
    }


def marked(spec: ActionSpec, arguments: JsonMap) -> dict[str, str]:
    """What the mark of this action stands on, where that is not the node of the step."""
    return {"mark_on": str(arguments.get(spec.mark_on, ""))} if spec.mark_on else {}


def looked(seen: Observation) -> JsonMap:
    """What recovery compares: everything about the node that could tell whether the effect happened."""
    return {
        "standing": seen.standing.value,
        "why": seen.why[:500],
        "boot_id": seen.boot_id,
        "owner": seen.owner[:200],
        "state": seen.state,
        "reason": seen.reason[:500],
    }


def forbidden(transaction: Transaction, run: Run, intent: Intent, policy: Policy) -> str:
    """Why the intent may not be made: a label, a latched limit, the hourly limit or the budget."""
    node = intent.place.node
    if node in policy.protected.get(run.cluster, frozenset()):
        return f"{node} is a protected host: no runbook acts on it"
    rows = transaction.query(
        "SELECT actor, why FROM hands_off WHERE cluster = ? AND node = ?", (run.cluster, node)
    )
    if rows:
        return f"{node} is labelled hands-off: {rows[0][1]}"
    if intent.undoing:
        return ""  # taking back our own marks is never held up by a limit (design 5)
    for name, why in transaction.query("SELECT name, why FROM latches ORDER BY name"):
        if name == "restore" or intent.spec.may_end_jobs or intent.spec.takes_node_out:
            return f"stopped by the limit {name} until an admin clears it: {why}"
    why = _over_limits(transaction, run, intent, policy)
    if why:
        limit = "nodes-out" if why.startswith("pool ") else "job-ending"
        data = {"limit": limit, "why": why[:1000]}
        transaction.append(run_event(EventKind.LIMIT_TRIPPED, run, data, intent.place))
        transaction.append(page_event(run, why, intent.instance, limit))
    return why


def _over_limits(transaction: Transaction, run: Run, intent: Intent, policy: Policy) -> str:
    limits = policy.site.limits
    pool = intent.pool
    if intent.spec.may_end_jobs:
        since = microseconds(transaction.now - timedelta(hours=1))
        count = "SELECT count(*) FROM effects WHERE at_us > ?"
        everywhere = transaction.query(count, (since,))[0][0]
        why = over_hourly(limits.ending_actions_per_hour, everywhere, "bot-wide")
        if why:
            return why
        name = pool.name if pool else None
        there = transaction.query(
            f"{count} AND cluster = ? AND pool IS ?", (since, run.cluster, name)
        )
        most = limits.ending_actions_per_hour_per_pool
        why = over_hourly(most, there[0][0], f"in pool {name}")
        if why:
            return why
    if intent.spec.takes_node_out and pool is not None and intent.place.node is not None:
        marks = transaction.query(
            "SELECT node FROM marks WHERE cluster = ? AND kind <> 'reservation'", (run.cluster,)
        )
        reserved = [NodeName(row[0]) for row in marks]
        return over_budget(pool, intent.nodes, reserved, intent.place.node)
    return ""
