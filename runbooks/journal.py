"""Every commit that moves a run: one function, one transaction.

Nothing else in `runbooks` writes. Each function reads the run again inside its transaction, so a
decision made on an older view is refused there and not carried out.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from typing import Any

from actions.contract import ActionSpec, Mark, Observation
from audit_log.ledger import Transaction, Urgency
from audit_log.records import Event, EventKind
from audit_log.restoration import MAY_ACT
from config.actors import ENGINE
from config.clock import from_microseconds, microseconds
from config.ids import ClusterName, PlanHash, RunId
from config.json_values import JsonMap
from config.node_names import NodeName, fold
from runbooks.machine import Move, RunState
from runbooks.next_step import Place
from runbooks.parts import Parts
from runbooks.plan import Plan
from runbooks.policy import Pool
from runbooks.projection import load
from runbooks.rails import Needed, over_budget, over_hourly
from runbooks.run import Run, StepState, run_nodes

LARGEST_INLINE = 4096
"""Bytes of an output that go into the record itself; a larger one is an artefact (design 4)."""


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
    nodes: Mapping[NodeName, Any]
    """Nodes of the snapshot, for the budget."""
    undoing: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """How an attempt ended: done, undone, failed, again or unknown."""

    outcome: str
    _: KW_ONLY
    why: str = ""
    kind: str = ""
    output: JsonMap | None = None
    mark_text: str = ""
    until: datetime | None = None


class Journal:
    """The writing half of the engine."""

    def __init__(self, parts: Parts) -> None:
        """Over the engine's parts."""
        self._parts = parts
        self._ledger = parts.ledger

    def move(self, run: RunId, move: Move, why: str, due: datetime | None = None) -> None:
        """Move the state machine; a run that needs a person is also paged, in one transaction."""

        def decide(transaction: Transaction) -> None:
            now = load(transaction, run)
            if now.state.final:
                raise Changed(run)
            self._append_move(transaction, now, move, why, due)

        self._ledger.commit(decide)

    def _append_move(
        self,
        transaction: Transaction,
        run: Run,
        move: Move,
        why: str,
        due: datetime | None = None,
    ) -> None:
        data: dict[str, Any] = {"move": move.value, "why": why[:1000]}
        if due is not None:
            data["due_us"] = microseconds(due)
        transaction.append(_event(EventKind.RUN_STATE, run, data))
        if move is Move.ESCALATE:
            transaction.append(page_event(run, why, self._ledger.instance))

    def read(self, run: RunId, place: Place, action: str, output: JsonMap, why: str = "") -> None:
        """A look has its output."""
        data: JsonMap = {
            "key": place.key,
            "action": action,
            "output": self._stored(output),
            "why": why[:1000],
        }
        self._step_event(run, EventKind.STEP_READ, place, data)

    def refuse(self, run: RunId, place: Place, error: str, kind: str) -> None:
        """A step failed before any intent was made."""
        data = {"key": place.key, "error": error[:2000], "kind": kind}
        self._step_event(run, EventKind.STEP_READ, place, data)

    def skip(self, run: RunId, place: Place, why: str) -> None:
        """A step is not needed."""
        self._step_event(run, EventKind.STEP_SKIPPED, place, {"key": place.key, "why": why[:500]})

    def wait(self, run: Run, place: Place, until: datetime, why: str) -> None:
        """Look again at `until`; the same wait again is not recorded (design 4: no unchanged polls)."""
        before = run.steps.get(place.key)
        if before is not None and before.state is StepState.WAITING and before.why == why:
            return
        data: JsonMap = {"key": place.key, "until_us": microseconds(until), "why": why[:1000]}
        self._step_event(run.id, EventKind.STEP_WAITS, place, data)

    def _step_event(self, run: RunId, kind: EventKind, place: Place, data: JsonMap) -> None:
        def decide(transaction: Transaction) -> None:
            now = load(transaction, run)
            if not now.state.acts:
                raise Changed(run)
            transaction.append(_event(kind, now, data, place))

        self._ledger.commit(decide)

    def plan(self, run: RunId, plan: Plan, at: str, needed: Needed) -> None:
        """A plan is made; where it needs a yes, the run waits for it, in the same transaction."""
        artefact = self._parts.artefacts.put(json.dumps(plan.to_json()).encode())
        expires = self._parts.policy.site.approvals.expiry

        def decide(transaction: Transaction) -> None:
            now = load(transaction, run)
            if not now.state.acts or now.stop_wanted:
                raise Changed(run)
            data: JsonMap = {
                "hash": plan.hash,
                "artefact": artefact,
                "ask": now.asks + 1,
                "at": at,
                "gate": needed.gate.value,
                "approvals_needed": needed.persons,
                "expires_us": microseconds(transaction.now + expires),
                "summary": needed.why,
            }
            transaction.append(_event(EventKind.PLAN_MADE, now, data))
            if needed.persons:
                after = load(transaction, run)
                if after.state is RunState.WAITING:
                    self._append_move(transaction, after, Move.WAKE, "")
                    after = load(transaction, run)
                due = transaction.now + expires
                self._append_move(transaction, after, Move.ASK, needed.why, due)

        self._ledger.commit(decide)

    def void(self, run: RunId, why: str) -> None:
        """The world moved in a way that matters: the plan is made and asked again."""

        def decide(transaction: Transaction) -> None:
            now = load(transaction, run)
            if not now.state.acts:
                raise Changed(run)
            transaction.append(_event(EventKind.PLAN_VOIDED, now, {"why": why[:1000]}))

        self._ledger.commit(decide)

    def take_locks(self, run: RunId, locks: Sequence[str], atoms: Sequence[str]) -> str:
        """All locks or none; returns who holds the first that is taken, or the empty string."""

        def decide(transaction: Transaction) -> str:
            now = load(transaction, run)
            if not now.state.acts or now.stop_wanted:
                raise Changed(run)
            for atom in atoms:
                for (holder,) in transaction.query("SELECT run FROM locks WHERE atom = ?", (atom,)):
                    if holder != run:
                        return f"{atom.partition('/')[2]} is held by {holder}"
            fresh = [
                atom
                for atom in atoms
                if not transaction.query("SELECT 1 FROM locks WHERE atom = ?", (atom,))
            ]
            data = {"locks": list(locks), "atoms": fresh}
            transaction.append(_event(EventKind.LOCKS_TAKEN, now, data))
            return ""

        return self._ledger.commit(decide)

    def intend(
        self, run: RunId, root: RunId, intent: Intent, plan: tuple[RunId, PlanHash] | None
    ) -> str:
        """Commit the intent with everything it reserves; returns why not, or the empty string.

        All limits are checked here and nowhere else, inside the transaction that takes the place.
        Raises Changed when the run may not act any more.
        """

        def decide(transaction: Transaction) -> str:
            now = load(transaction, run)
            _may_act(now, root, transaction, intent, plan)
            why = self._forbidden(transaction, now, intent)
            if why:
                return why
            transaction.append(
                _event(EventKind.STEP_INTENDED, now, _intended(intent), intent.place)
            )
            return ""

        return self._ledger.commit(decide, Urgency.INTENT)

    def _forbidden(self, transaction: Transaction, run: Run, intent: Intent) -> str:
        """Hands-off, latched limits, the hourly limit, the budget; a limit that is hit latches."""
        node = intent.place.node
        if node in self._parts.policy.protected.get(run.cluster, frozenset()):
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
        why = self._over_limits(transaction, run, intent)
        if why:
            limit = "nodes-out" if why.startswith("pool ") else "job-ending"
            data = {"limit": limit, "why": why[:1000]}
            transaction.append(_event(EventKind.LIMIT_TRIPPED, run, data, intent.place))
            transaction.append(page_event(run, why, self._ledger.instance, limit))
        return why

    def _over_limits(self, transaction: Transaction, run: Run, intent: Intent) -> str:
        limits = self._parts.policy.site.limits
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
            marks = transaction.query("SELECT node FROM marks WHERE cluster = ?", (run.cluster,))
            reserved = [NodeName(row[0]) for row in marks]
            return over_budget(pool, intent.nodes, reserved, intent.place.node)
        return ""

    def finish(
        self, run: RunId, place: Place, spec: ActionSpec, attempt: int, finished: Finished
    ) -> bool:
        """Record an outcome; False when it came for an attempt that is no longer open (late).

        An unknown outcome, or an undo that failed, hands the run to a person in the same transaction.
        """

        def decide(transaction: Transaction) -> bool:
            now = load(transaction, run)
            step = now.steps.get(place.key)
            data = self._finished(place, spec, attempt, finished)
            open_ = step is not None and step.state is StepState.INTENDED
            if not open_ or step is None or step.attempt != attempt:
                transaction.append(_event(EventKind.STEP_LATE, now, data, place))
                return False
            transaction.append(_event(EventKind.STEP_FINISHED, now, data, place))
            stuck = finished.outcome == "unknown" or (finished.outcome == "failed" and step.undoing)
            if stuck and now.state.acts:
                after = load(transaction, run)
                self._append_move(transaction, after, Move.ESCALATE, finished.why)
            return True

        return self._ledger.commit(decide, Urgency.OUTCOME)

    def settle(self, run: RunId, place: Place, spec: ActionSpec, finished: Finished) -> None:
        """A step that turned out to be so already while it was to be taken back."""

        def decide(transaction: Transaction) -> None:
            now = load(transaction, run)
            if not now.state.acts:
                raise Changed(run)
            data = self._finished(place, spec, now.steps[place.key].attempt, finished)
            transaction.append(_event(EventKind.STEP_FINISHED, now, data, place))

        self._ledger.commit(decide, Urgency.OUTCOME)

    def _finished(
        self, place: Place, spec: ActionSpec, attempt: int, finished: Finished
    ) -> dict[str, Any]:
        data: dict[str, Any] = {
            "key": place.key,
            "attempt": attempt,
            "outcome": finished.outcome,
            "why": finished.why[:1500],
            "kind": finished.kind,
        }
        if finished.output is not None:
            data["output"] = self._stored(finished.output)
        if spec.sets_mark:
            data["mark"] = spec.sets_mark
            data["mark_text"] = finished.mark_text[:200]
        if spec.clears_mark:
            data["clears"] = spec.clears_mark
        if finished.until is not None:
            data["until_us"] = microseconds(finished.until)
        return data

    def start_child(self, parent: Run, place: Place, fresh: Mapping[str, Any]) -> None:
        """Begin a called runbook as a run of its own."""

        def decide(transaction: Transaction) -> None:
            now = load(transaction, parent.id)
            if not now.state.acts or now.stop_wanted:
                raise Changed(parent.id)
            child = next_run_id(transaction)
            data = {
                **fresh,
                "roles": list(now.roles),
                "door": now.door,
                "reason": now.reason,
                "parent": now.id,
                "parent_step": place.key,
            }
            transaction.append(
                Event(
                    kind=EventKind.RUN_REQUESTED,
                    actor=now.requested_by,
                    run=child,
                    cluster=now.cluster,
                    data=data,
                )
            )
            data = {"key": place.key, "child": child}
            transaction.append(_event(EventKind.CHILD_STARTED, now, data, place))

        self._ledger.commit(decide)

    def marks(self, cluster: ClusterName, node: NodeName | None) -> tuple[Mark, ...]:
        """Open marks of ours on this node."""
        rows = self._ledger.query(
            "SELECT kind, run, boot_id, text, at_us FROM marks WHERE cluster = ? AND node = ?",
            (cluster, node),
        )
        return tuple(
            Mark(
                kind=kind,
                cluster=cluster,
                node=NodeName(str(node)),
                run=RunId(run),
                boot_id=boot,
                text=text,
                at=from_microseconds(at),
            )
            for kind, run, boot, text, at in rows
        )

    def _stored(self, output: JsonMap) -> JsonMap:
        """The output itself, or the digest of the artefact that holds it."""
        text = json.dumps(output, ensure_ascii=True)
        if len(text) <= LARGEST_INLINE:
            return output
        return {"artefact": self._parts.artefacts.put(text.encode())}


def _may_act(
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
    step = run.steps.get(intent.place.key)
    if (step.attempt if step else 0) + 1 != intent.attempt:
        raise Changed(f"{run.id}: another attempt of {intent.place.key}")
    if plan is not None:
        planner = load(transaction, plan[0])
        if planner.plan is None or planner.plan.hash != plan[1] or not planner.approved:
            raise Changed(f"{run.id}: its plan was voided")
    if intent.place.node is not None:
        atom = f"{run.cluster}/node:{intent.place.node}"
        holders = transaction.query("SELECT run FROM locks WHERE atom = ?", (atom,))
        if [row[0] for row in holders] != [root]:
            raise Changed(f"{run.id} does not hold {atom}")


def _intended(intent: Intent) -> dict[str, Any]:
    seen = intent.seen
    return {
        "key": intent.place.key,
        "action": f"{intent.spec.name}@{intent.spec.version}",
        "attempt": intent.attempt,
        "arguments": intent.place.arguments,
        "expires_us": microseconds(intent.expires_at),
        "undoing": intent.undoing,
        "mark": intent.spec.sets_mark,
        "may_end_jobs": intent.spec.may_end_jobs,
        "pool": intent.pool.name if intent.pool else None,
        "looked": looked(seen),
    }


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


def _event(kind: EventKind, run: Run, data: JsonMap, place: Place | None = None) -> Event:
    return Event(
        kind=kind,
        actor=ENGINE.id,
        run=run.id,
        step=place.step.id if place else None,
        cluster=run.cluster,
        node=place.node if place else None,
        data=data,
    )


def page_event(run: Run, why: str, instance: str, limit: str = "") -> Event:
    """The intent to page about this run; the worker sends it and records what became of it."""
    key = f"nodewarden/{instance}/{run.id}" + (f"/{limit}" if limit else "")
    where = fold(run_nodes(run))
    summary = f"{run.id} {run.runbook} {where}: {why}"[:200]
    details = json.dumps({"run": run.id, "cluster": run.cluster, "why": why[:1000]})
    return _event(
        EventKind.PAGE_INTENDED, run, {"key": key, "summary": summary, "details": details}
    )


def next_run_id(transaction: Transaction) -> RunId:
    """An id that this ledger never gave before."""
    number = transaction.query("SELECT coalesce(max(number), 0) + 1 FROM runs")[0][0]
    return RunId(f"run-{number}")
