"""What people ask of runs: start, approve, stop, hand over, and the labels that hold runs back.

Called by `bot.desk` after the permission check. Each function is one transaction that reads the run
again, so two clicks cannot both decide and a stale button is refused by state, not by age.
Refusals are sentences for the person who asked.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from audit_log.ledger import Transaction, Urgency
from audit_log.records import Event, EventKind
from audit_log.restoration import PENDING
from config.actors import Actor, ActorKind, Door
from config.clock import microseconds
from config.ids import ActorId, ClusterName, PlanHash, RunId
from config.json_values import Json, JsonMap
from config.node_names import NodeName
from runbooks.definition import Definition
from runbooks.fence import word_of
from runbooks.in_hand import pages_over
from runbooks.intents import marked
from runbooks.journal import next_run_id
from runbooks.machine import Move, RunState
from runbooks.next_step import undoes
from runbooks.packing import packed, too_many
from runbooks.parts import Parts
from runbooks.rails import PlanGate
from runbooks.run import Run, StepRecord, StepState
from runbooks.run_events import page_event
from runbooks.run_rows import load
from runbooks.stops import Asked, CannotDo, ask_to_stop, asked_event, in_question, question

__all__ = ["CannotDo", "Requests", "RunRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """A run that somebody who may wants to have."""

    runbook: str
    version: int | None = None
    cluster: ClusterName
    parameters: Mapping[str, Json]
    actor: Actor
    door: Door
    reason: str
    key: str = ""
    """The same key again is the same request (a Slack trigger id, a command's own id)."""
    roles: tuple[str, ...] = field(default=())
    place: str = ""
    """Where at its door it was asked for: the Slack channel, for the run's card."""


class Requests:
    """The commands that change runs."""

    def __init__(self, parts: Parts) -> None:
        """Over the engine's parts."""
        self._parts = parts
        self._ledger = parts.ledger

    # -- starting -----------------------------------------------------------------------------

    def definition(self, name: str, version: int | None = None) -> Definition:
        """The runbook with all it leans on. Raises CannotDo for an unknown one."""
        try:
            return self._parts.library.definition(name, version)
        except KeyError as problem:
            raise CannotDo(str(problem.args[0])) from problem

    def run(self, asked: RunRequest) -> tuple[RunId, bool]:
        """Start a run; its id, and whether it is new. One commit, no look at the cluster."""
        _must_fit(asked.parameters)
        definition = self.definition(asked.runbook, asked.version)
        artefact = self._parts.artefacts.put(json.dumps(definition.to_json()).encode())
        return self._ledger.commit(
            lambda transaction: self._begin(transaction, asked, definition, artefact), Urgency.ACK
        )

    def _begin(
        self, transaction: Transaction, asked: RunRequest, definition: Definition, artefact: str
    ) -> tuple[RunId, bool]:
        # Keys are made by those who ask: one that somebody else sent too is another request.
        key = f"{asked.actor.id} {asked.key}" if asked.key else ""
        if key:
            rows = transaction.query("SELECT run FROM request_keys WHERE key = ?", (key,))
            if rows:
                return RunId(rows[0][0]), False
        run = next_run_id(transaction)
        data: dict[str, Json] = {
            "runbook": definition.runbook.name,
            "version": definition.runbook.version,
            "title": definition.runbook.title,
            "definition": artefact,
            "parameters": packed(asked.parameters),
            "roles": sorted(asked.roles or asked.actor.roles),
            "door": asked.door.value,
            "reason": asked.reason[:500],
            "key": key,
        }
        if asked.place:
            data["place"] = asked.place
        transaction.append(
            Event(
                kind=EventKind.RUN_REQUESTED,
                actor=asked.actor.id,
                run=run,
                cluster=asked.cluster,
                data=data,
            )
        )
        return run, True

    # -- agreeing -----------------------------------------------------------------------------

    def approve(self, run: RunId, plan: PlanHash | None, actor: Actor, door: Door) -> Run:
        """Say yes to the plan with this hash (None: the present one, as the command line shows it)."""

        def decide(transaction: Transaction) -> Run:
            now = self._awaiting(transaction, run, plan)
            _may_approve(now, actor)
            data = {"hash": now.plan.hash if now.plan else "", "door": door.value}
            transaction.append(asked_event(EventKind.APPROVAL_GIVEN, now, actor.id, data))
            return load(transaction, run)

        return self._ledger.commit(decide, Urgency.ACK)

    def break_glass(self, run: RunId, actor: Actor, door: Door, reason: str) -> Run:
        """Act without the approvals that are missing; pages the approvers and is counted."""
        if not reason:
            raise CannotDo("break-glass needs a reason: it is shown to everybody who is paged")
        if actor.kind is not ActorKind.PERSON:
            raise CannotDo("only a person can break the glass")
        if actor.shared:
            raise CannotDo(
                f"{actor.name} is a shared account: it cannot say who broke the glass; do it in your "
                "own name (with sudo the login user counts)"
            )

        def decide(transaction: Transaction) -> Run:
            now = self._awaiting(transaction, run, None)
            data = {
                "hash": now.plan.hash if now.plan else "",
                "door": door.value,
                "reason": reason[:500],
            }
            transaction.append(asked_event(EventKind.BREAK_GLASS, now, actor.id, data))
            why = f"break-glass: acted without approval; reason given: {reason}"
            transaction.append(page_event(now, why, self._ledger.instance, "break-glass"))
            return load(transaction, run)

        return self._ledger.commit(decide, Urgency.ACK)

    def deny(self, run: RunId, plan: PlanHash | None, actor: Actor, reason: str) -> Run:
        """Say no: the run ends."""

        def decide(transaction: Transaction) -> Run:
            now = self._awaiting(transaction, run, plan)
            data = {"hash": now.plan.hash if now.plan else "", "reason": reason[:500]}
            transaction.append(asked_event(EventKind.APPROVAL_DENIED, now, actor.id, data))
            why = f"denied: {reason}"
            if not now.acted:
                return self._move(transaction, now, Move.DENY, actor.id, why)
            # In the middle of a run, a no ends it like an abort: as the runbook says.
            asked = Asked(actor=actor.id, reason=why, instance=self._ledger.instance)
            return ask_to_stop(transaction, load(transaction, run), Move.WANT_ABORT, asked)

        return self._ledger.commit(decide, Urgency.ACK)

    def _awaiting(self, transaction: Transaction, run: RunId, plan: PlanHash | None) -> Run:
        now = self._load(transaction, run)
        if now.state is not RunState.AWAITING_APPROVAL or now.plan is None:
            raise CannotDo(f"{run} is {now.state}: there is nothing to approve. {now.why}".strip())
        if plan is not None and now.plan.hash != plan:
            raise CannotDo(f"the plan of {run} changed; see its new card and decide on that one")
        if transaction.now >= now.plan.expires_at:
            raise CannotDo(f"the plan of {run} has expired: nothing was done; run it again")
        return now

    # -- steering -----------------------------------------------------------------------------

    def stop(self, run: RunId, how: Move, actor: Actor, reason: str) -> Run:
        """Abort, pause or take over (`Move.WANT_…`), at the next step boundary."""

        def decide(transaction: Transaction) -> Run:
            asked = Asked(actor=actor.id, reason=reason, instance=self._ledger.instance)
            return ask_to_stop(transaction, self._load(transaction, run), how, asked)

        return self._ledger.commit(decide, Urgency.ACK)

    def resume(
        self, run: RunId, actor: Actor, reason: str, done: bool | None, about: str = ""
    ) -> Run:
        """Go on with a paused run, or say what happened to the step that needs a person.

        `about`: the question that was answered, as a card named it; an old card decides no new one.
        """

        def decide(transaction: Transaction) -> Run:
            now = self._load(transaction, run)
            asks = question(now, self._parts.specs)
            if about and about != asks:
                raise CannotDo(
                    f"{run} does not ask about {about} any more; see `status {run}` for what it "
                    f"asks now{f' ({asks})' if asks else ''}"
                )
            if now.state is RunState.PAUSED:
                return self._move(transaction, now, Move.RESUME, actor.id, reason)
            if now.state is not RunState.NEEDS_PERSON:
                raise CannotDo(f"{run} is {now.state}: there is nothing to resume")
            self._resolve(transaction, now, actor, (reason, done))
            # A run that began to take back never goes forward again, whatever was said.
            on = Move.UNDO if now.turned_back else Move.RESOLVE
            return self._move(transaction, load(transaction, run), on, actor.id, reason)

        return self._ledger.commit(decide, Urgency.ACK)

    def _resolve(
        self, transaction: Transaction, run: Run, actor: Actor, said: tuple[str, bool | None]
    ) -> None:
        """Record for the step in question whether it is done; without one the run just goes on."""
        reason, done = said
        key = in_question(run, self._parts.specs)
        if key is None:
            return
        if done is None:
            raise CannotDo(
                f"say what happened to {key} of {run.id}: "
                f'`resume {run.id} --done "reason"` or `resume {run.id} --not-done "reason"`'
            )
        if not reason:
            raise CannotDo("a reason is needed: it stands in the audit log beside your name")
        step = run.steps[key]
        if step.state is StepState.DONE and not done:
            return  # it is to be taken back and still there: that is tried again
        data: dict[str, Any] = {
            "key": key,
            "attempt": step.attempt,
            "outcome": _outcome(step, done),
            "why": reason[:1000],
            **self._marks(step, done),
        }
        if done and (word := word_of(self._parts, run, step, actor, reason)):
            data["output"] = word
        event = Event(
            kind=EventKind.STEP_RESOLVED,
            actor=actor.id,
            run=run.id,
            step=step.step,
            cluster=run.cluster,
            node=step.node,
            data=data,
        )
        transaction.append(event)

    def _marks(self, step: StepRecord, done: bool) -> dict[str, str]:
        """Which marks of ours a person's word leaves or takes away."""
        specs = self._parts.specs
        spec = specs.get(step.action.partition("@")[0])
        taken = spec
        if step.state is StepState.DONE:  # what takes it back was not even tried
            taken = specs.get(undoes(step, specs) or "")
        marks = {}
        if spec is not None and spec.sets_mark:
            marks["mark"] = spec.sets_mark
        if taken is not None and taken.clears_mark and done:
            marks["clears"] = taken.clears_mark
        for found in (spec, taken):
            marks |= marked(found, step.arguments) if found is not None else {}
        return marks

    def give_up(self, run: RunId, actor: Actor, reason: str) -> Run:
        """A person says that a run which needs one has failed."""
        return self._ledger.commit(
            lambda transaction: self._move(
                transaction, self._load(transaction, run), Move.FAIL, actor.id, reason
            ),
            Urgency.ACK,
        )

    # -- holding back -------------------------------------------------------------------------

    def halt(self, actor: ActorId, reason: str) -> None:
        """Stop every new effect: the file first, which works even where the ledger does not."""
        try:
            self._parts.halt.set(reason)
        except OSError as problem:
            raise CannotDo(
                f"NOT halted: {self._parts.halt.path} cannot be made ({problem.strerror}); make room "
                "or make it by hand, or stop the bot's process: nothing acts without it"
            ) from problem
        event = Event(kind=EventKind.HALT_SET, actor=actor, data={"why": reason[:500]})
        self._ledger.commit(lambda transaction: transaction.append(event), Urgency.ACK)

    def clear_halt(self, actor: ActorId, reason: str) -> None:
        """Resume: the record first, so that no effect comes before it."""
        event = Event(kind=EventKind.HALT_CLEARED, actor=actor, data={"why": reason[:500]})
        self._ledger.commit(lambda transaction: transaction.append(event), Urgency.ACK)
        try:
            self._parts.halt.clear()
        except OSError as problem:
            raise CannotDo(
                f"still halted: {self._parts.halt.path} cannot be removed ({problem.strerror}); "
                "remove it by hand"
            ) from problem

    def clear_limit(self, actor: ActorId, limit: str, reason: str) -> None:
        """Open a latched limit again. Raises CannotDo when it is not latched."""

        def decide(transaction: Transaction) -> None:
            if not transaction.query("SELECT 1 FROM latches WHERE name = ?", (limit,)):
                raise CannotDo(
                    f"the limit {limit} is not latched; `list limits` shows those that are"
                )
            data = {"limit": limit, "why": reason[:500]}
            transaction.append(Event(kind=EventKind.LIMIT_CLEARED, actor=actor, data=data))

        self._ledger.commit(decide, Urgency.ACK)

    def hands_off(
        self, cluster: ClusterName, nodes: Sequence[NodeName], actor: ActorId, reason: str | None
    ) -> None:
        """Label nodes that no runbook touches; a reason of None takes the label away."""
        kind = EventKind.HANDS_OFF_CLEARED if reason is None else EventKind.HANDS_OFF_SET
        _must_fit({"nodes": list(nodes)})
        data: JsonMap = packed({"nodes": list(nodes), "why": (reason or "")[:500]})
        event = Event(kind=kind, actor=actor, cluster=cluster, data=data)
        self._ledger.commit(lambda transaction: transaction.append(event), Urgency.ACK)

    def confirm_restore(self, actor: ActorId, run: RunId | None, reason: str) -> None:
        """After a restore: this run may act again, or (None) every run may."""

        def decide(transaction: Transaction) -> None:
            if not transaction.query(PENDING):
                raise CannotDo("no restore waits for a confirmation")
            cluster = self._load(transaction, run).cluster if run is not None else None
            transaction.append(
                Event(
                    kind=EventKind.RESTORE_CONFIRMED,
                    actor=actor,
                    run=run,
                    cluster=cluster,
                    data={"why": reason[:500]},
                )
            )

        self._ledger.commit(decide, Urgency.ACK)

    def _load(self, transaction: Transaction, run: RunId) -> Run:
        try:
            return load(transaction, run)
        except KeyError as problem:
            raise CannotDo(f"there is no run {run}; `list runs` shows them") from problem

    def _move(
        self, transaction: Transaction, run: Run, move: Move, actor: ActorId, why: str
    ) -> Run:
        data: dict[str, Any] = {"move": move.value, "why": why[:1000]}
        if move in {Move.RESUME, Move.RESOLVE}:
            data["due_us"] = microseconds(transaction.now)
        transaction.append(asked_event(EventKind.RUN_STATE, run, actor, data))
        if run.state is RunState.NEEDS_PERSON:
            pages_over(transaction, run, why, self._ledger.instance)
        return load(transaction, run.id)


def _must_fit(parameters: Mapping[str, Json]) -> None:
    """Raise CannotDo for more nodes than the ledger can name in one record."""
    why = too_many(parameters)
    if why:
        raise CannotDo(why)


def _may_approve(run: Run, actor: Actor) -> None:
    """Approvers are distinct persons and never the requester, at whatever door (design 5)."""
    confirm = run.plan is not None and run.plan.gate == PlanGate.CONFIRM
    if actor.kind is not ActorKind.PERSON:
        raise CannotDo("only a person can approve")
    if actor.shared:
        raise CannotDo(f"{actor.name} is a shared account: it cannot say who approved")
    if actor.id == run.requested_by and not confirm:
        raise CannotDo(f"you asked for {run.id}: somebody else must approve it")
    for approval in run.approvals:
        if approval.actor == actor.id and run.plan and approval.hash == run.plan.hash:
            raise CannotDo(f"you approved {run.id} already; it needs another person")


def _outcome(step: StepRecord, done: bool) -> str:
    """What a person's word says of this step; a done one is in question only when it is undone."""
    if not done:
        return "again"
    return "undone" if step.undoing or step.state is StepState.DONE else "done"
