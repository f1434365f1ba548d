"""Every commit that moves a run: one function, one transaction.

Nothing else in `runbooks` writes. Each function reads the run again inside its transaction, so a
decision made on an older view is refused there and not carried out.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import Any

from actions.contract import ActionSpec
from audit_log.ledger import Transaction, Urgency
from audit_log.records import Event, EventKind
from config.clock import microseconds
from config.ids import PlanHash, RunId
from config.json_values import JsonMap
from runbooks.in_hand import pages_over
from runbooks.intents import Changed, Intent, forbidden, intended, marked, may_act
from runbooks.machine import Move, RunState
from runbooks.next_step import Place, left_behind
from runbooks.packing import packed
from runbooks.parts import Parts
from runbooks.plan import Plan
from runbooks.rails import Needed
from runbooks.run import Run, StepState
from runbooks.run_events import call_undone, page_event, run_event, taken_over
from runbooks.run_rows import load

LARGEST_INLINE = 4096
"""Bytes of an output that go into the record itself; a larger one is an artefact (design 4)."""


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

    def hand_over(self, run: RunId, why: str) -> None:
        """A person takes the run over: nobody is paged, and who was need not come."""

        def decide(transaction: Transaction) -> None:
            now = load(transaction, run)
            if not now.state.acts and now.state is not RunState.AWAITING_APPROVAL:
                raise Changed(run)
            data: JsonMap = {"move": Move.ESCALATE.value, "why": why[:1000]}
            transaction.append(run_event(EventKind.RUN_STATE, now, data))
            pages_over(transaction, now, why, self._ledger.instance)

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
        transaction.append(run_event(EventKind.RUN_STATE, run, data))
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

    def wait(
        self, run: Run, place: Place, until: datetime, why: str, *, blind: bool = False
    ) -> None:
        """Look again at `until`; the same wait again is not recorded (design 4: no unchanged polls).

        `blind`: because a look got no answer; how long that lasts is counted from the first.
        """
        before = run.steps.get(place.key)
        undoing = run.state is RunState.UNDOING
        waits = undoing or run.state is RunState.WAITING
        if before is not None and waits and (undoing or before.state is StepState.WAITING):
            if blind and before.blind_since is not None:
                return
            if before.why == why and blind == (before.blind_since is not None):
                return
        data: JsonMap = {
            "key": place.key,
            "until_us": microseconds(until),
            "why": why[:1000],
            "blind": blind,
            "undoing": undoing,
        }
        self._step_event(run.id, EventKind.STEP_WAITS, place, data)

    def _step_event(self, run: RunId, kind: EventKind, place: Place, data: JsonMap) -> None:
        def decide(transaction: Transaction) -> None:
            now = load(transaction, run)
            if not now.state.acts:
                raise Changed(run)
            transaction.append(run_event(kind, now, data, place))

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
            transaction.append(run_event(EventKind.PLAN_MADE, now, data))
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
            transaction.append(run_event(EventKind.PLAN_VOIDED, now, {"why": why[:1000]}))

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
            data = packed({"locks": list(locks), "atoms": fresh})
            transaction.append(run_event(EventKind.LOCKS_TAKEN, now, data))
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
            may_act(now, root, transaction, intent, plan)
            why = forbidden(transaction, now, intent, self._parts.policy)
            if why:
                return why
            data = intended(intent)
            if intent.spec.sets_mark and root != run:
                data["mark_run"] = root  # in whose name it is written and looked for again
            transaction.append(run_event(EventKind.STEP_INTENDED, now, data, intent.place))
            return ""

        return self._ledger.commit(decide, Urgency.INTENT)

    def finish(
        self, run: RunId, place: Place, spec: ActionSpec, attempt: int, finished: Finished
    ) -> bool:
        """Record an outcome; False when it came for an attempt that is no longer open (late).

        An unknown outcome, or an undo that failed, hands the run to a person in the same transaction.
        """
        # Outside of the transaction: a large output becomes a file, for which no other run may wait.
        data = self._finished(place, spec, attempt, finished)

        def decide(transaction: Transaction) -> bool:
            now = load(transaction, run)
            step = now.steps.get(place.key)
            open_ = step is not None and step.state is StepState.INTENDED
            if not open_ or step is None or step.attempt != attempt:
                transaction.append(run_event(EventKind.STEP_LATE, now, data, place))
                return False
            transaction.append(run_event(EventKind.STEP_FINISHED, now, data, place))
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
            transaction.append(run_event(EventKind.STEP_FINISHED, now, data, place))

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
        data |= marked(spec, place.arguments)
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
            transaction.append(run_event(EventKind.CHILD_STARTED, now, data, place))

        self._ledger.commit(decide)

    def take_over(self, run: RunId, key: str) -> None:
        """What the run called at `key` has left behind becomes this run's to take back; where that
        is nothing (any more), the call itself is taken back.
        """

        def decide(transaction: Transaction) -> None:
            now = load(transaction, run)
            call = now.steps[key]
            if now.state is not RunState.UNDOING or call.child is None:
                raise Changed(run)
            called = load(transaction, call.child)
            if called.open:
                raise Changed(f"{called.id} has not ended")
            left = left_behind(called, self._parts.specs)
            if left and not any(other.startswith(f"{key}/") for other in now.steps):
                for name, step in left:
                    transaction.append(taken_over(now, called.id, f"{key}/{name}", step))
            else:
                transaction.append(call_undone(now, key))

        self._ledger.commit(decide)

    def _stored(self, output: JsonMap) -> JsonMap:
        """The output itself, or the digest of the artefact that holds it."""
        text = json.dumps(output, ensure_ascii=True)
        if len(text) <= LARGEST_INLINE:
            return output
        return {"artefact": self._parts.artefacts.put(text.encode())}


def next_run_id(transaction: Transaction) -> RunId:
    """An id that this ledger never gave before, not even in records that a restore gave up.

    Each run had at least one record, so none of those had a number above the last record given up:
    a mark of theirs on the cluster is never taken for one of a later run.
    """
    number = transaction.query(
        "SELECT max(coalesce(max(number), 0), (SELECT coalesce(max(lost_to), 0) FROM restores)) + 1 "
        "FROM runs"
    )[0][0]
    return RunId(f"run-{number}")
