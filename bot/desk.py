"""The one desk behind every door: who may, what is meant, and what is said back.

Slack, the command line and the webhook hand over a `Request`; nothing else reaches the engine from
outside. What changes something is committed when `submit` returns; what only asks is answered by
`bot.answers`.
"""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from audit_log.errors import StoreError
from audit_log.gate import Gate, Question
from audit_log.refusal_limit import MOST
from bot.answers import Answers
from bot.commands import RUNBOOK_OF, VERBS, Verb
from bot.inventory import Inventory
from bot.parameters import parameters
from bot.phrases import Command, Misread
from bot.replies import Reply, ReplyKind, done, misread, refused
from config.actors import Actor, Door
from config.ids import ClusterName, PlanHash, RunId
from config.json_values import Json
from config.node_names import NodeNameError, NodeSet
from config.permissions import Denied, Permission, Target
from runbooks.machine import IllegalTransition, Move
from runbooks.parts import Parts
from runbooks.rails import PlanGate
from runbooks.requests import CannotDo, Requests, RunRequest
from runbooks.run import Run
from runbooks.values import ParameterError

_BY_HAND = {
    Verb.DRAIN: "drained by hand",
    Verb.REBOOT: "restarted by hand",
    Verb.REPLACE: "replaced by hand",
}
"""Reasons of people who give none."""
_TOO_MANY = (
    f"too many: more than {MOST} of your requests were refused in a minute; more are counted in one "
    "record, not written down one by one: see what is wrong before you say it again"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Somebody wants something."""

    actor: Actor
    door: Door
    command: Command
    key: str = ""
    """The same key is the same request: it is done once (a trigger id, a command's own id)."""
    place: str = ""
    """Where at the door it was said: the Slack channel, for the card."""
    at_card: bool = False
    """It was said at the card of a run: a button, or words in its thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refused(Exception):
    """An early answer."""

    reply: Reply


class Desk:
    """One per process; safe from any thread."""

    def __init__(
        self,
        parts: Parts,
        gate: Gate,
        inventory: Inventory,
        answers: Answers,
        changed: Callable[[RunId], None],
    ) -> None:
        """`changed` tells the worker that a run has news."""
        self._parts = parts
        self._requests = Requests(parts)
        self._gate = gate
        self._inventory = inventory
        self._answers = answers
        self._changed = changed
        self.elsewhere: Callable[[Request, ClusterName | None], str] = lambda _request, _cluster: ""
        """Set by the Slack door: where this is to be said instead, empty where it may be said here."""
        self._verbs: Mapping[Verb, Callable[[Request], Reply]] = {
            Verb.RUN: self._run,
            Verb.PLAN: self._run,
            Verb.DRAIN: self._with_reason,
            Verb.RETURN: self._return,
            Verb.REBOOT: self._with_reason,
            Verb.REPLACE: self._with_reason,
            Verb.REQUEUE: self._requeue,
            Verb.ABORT: lambda request: self._stop(request, Move.WANT_ABORT, "stops"),
            Verb.PAUSE: lambda request: self._stop(request, Move.WANT_PAUSE, "is paused"),
            Verb.TAKEOVER: lambda request: self._stop(request, Move.WANT_TAKEOVER, "is yours"),
            Verb.RESUME: self._resume,
            Verb.APPROVE: self._approve,
            Verb.DENY: self._deny,
            Verb.HALT: self._halt,
            Verb.HANDS_OFF: self._hands_off,
            Verb.AUDIT: self._audit,
        }

    def heard(self, text: str) -> str:
        """What came in at a door, secrets masked before anything reads, repeats or stores it."""
        return self._parts.ledger.redactor.text(text)

    def submit(self, request: Request) -> Reply:
        """The answer. Never raises for what a person can cause."""
        return self._answers.named(self._submit(request))

    def _submit(self, request: Request) -> Reply:
        try:
            act = self._verbs.get(request.command.verb)
            if act is not None:
                return act(request)
            self._need(request, VERBS[request.command.verb].permission, Target())
            return self._answers.answer(request.actor, request.door, request.command)
        except _Refused as early:
            return early.reply
        except (NodeNameError, CannotDo, ParameterError, IllegalTransition) as problem:
            if request.command.changes:  # a question is not recorded
                verb = request.command.verb.value
                self._gate.refuse(request.actor, request.door, verb, str(problem))
            return refused(*str(problem).splitlines(), *self._too_many(request))
        except Misread as problem:
            return misread(str(problem))

    def turn_away(self, door: Door, said: str, because: str) -> Reply:
        """The answer to somebody whom a door does not let in: `said`; the record says `because`."""
        with contextlib.suppress(StoreError):  # a full disk lets nobody in either
            self._gate.turn_away(door, because)
        return Reply(kind=ReplyKind.DENIED, lines=(said,), data={"error": said})

    # -- runs ---------------------------------------------------------------------------------

    def _run(self, request: Request) -> Reply:
        command = request.command
        return self._start(request, command.words[0], command.words[1:], command.options)

    def _with_reason(self, request: Request) -> Reply:
        command = request.command
        reason = command.rest(1) or _BY_HAND[command.verb]
        words = (command.words[0], f"reason={reason}")
        options = {**command.options, "reason": reason}
        return self._start(request, RUNBOOK_OF[command.verb], words, options)

    def _return(self, request: Request) -> Reply:
        command = request.command
        return self._start(request, RUNBOOK_OF[command.verb], command.words, command.options)

    def _requeue(self, request: Request) -> Reply:
        command = request.command
        job, node = command.words
        words = (f"job={job}", f"node={node}")
        return self._start(request, RUNBOOK_OF[command.verb], words, command.options)

    def _start(
        self,
        request: Request,
        name: str,
        words: tuple[str, ...],
        options: Mapping[str, str],
    ) -> Reply:
        """Check names, rights and parameters, then commit one row; the worker does the rest."""
        version = options.get("version")
        if version is not None and not version.isdecimal():
            raise Misread(f"--version is a whole number, not {version!r}")
        definition = self._requests.definition(name, int(version) if version else None)
        runbook = definition.runbook
        cluster, nodes, given = parameters(self._inventory, runbook, words, options.get("cluster"))
        looks = request.command.verb is Verb.PLAN
        needed = Permission.NODE_READ if looks else runbook.permission
        self._need(request, needed, self._inventory.target(cluster, nodes))
        asked = RunRequest(
            runbook=name,
            version=runbook.version,
            cluster=cluster,
            parameters=given,
            actor=request.actor,
            door=request.door,
            reason=options.get("reason", ""),
            key=request.key,
            place=request.place,
        )
        if request.command.verb is Verb.PLAN or "dry-run" in request.command.flags:
            return self._answers.plan(asked, definition)
        run, fresh = self._requests.run(asked)
        self._changed(run)
        count = f" ({len(nodes)} nodes)" if len(nodes) > 1 else ""
        word = "started" if fresh else "was started by this very request already"
        line = f"{run} {word}: {runbook.title}, {nodes}{count} on {cluster}"
        data: dict[str, Json] = {"run": run, "runbook": name, "nodes": list(nodes), "new": fresh}
        return Reply(kind=ReplyKind.STARTED, lines=(line,), data=data, run=run)

    def _stop(self, request: Request, how: Move, word: str) -> Reply:
        run = self._known(request)
        reason = request.command.rest(1)
        self._need(request, Permission.RUN_CONTROL, self._target(run))
        by = f"{request.actor.id}: {reason}" if reason else f"{request.actor.id}"
        after = self._requests.stop(run.id, how, request.actor, by)
        self._changed(run.id)
        when = "" if after.state.final or not after.state.acts else " at its next step boundary"
        return done(f"{run.id} {word}{when}", data={"run": run.id, "state": after.state.value})

    def _resume(self, request: Request) -> Reply:
        run = self._known(request)
        flags = request.command.flags
        if {"done", "not-done"} <= flags:
            raise Misread("say either --done or --not-done")
        said = "done" in flags if flags & {"done", "not-done"} else None
        self._need(request, Permission.RUN_CONTROL, self._target(run))
        about = request.command.options.get("step", "")
        after = self._requests.resume(run.id, request.actor, request.command.rest(1), said, about)
        self._changed(run.id)
        data = {"run": run.id, "state": after.state.value}
        return done(f"{run.id} goes on", data=data, run=run.id)

    def _approve(self, request: Request) -> Reply:
        run = self._known(request)
        glass = request.command.options.get("break-glass")
        if glass is not None:
            self._need(request, Permission.BREAK_GLASS, self._target(run))
            self._requests.break_glass(run.id, request.actor, request.door, glass)
            self._changed(run.id)
            return done(f"{run.id}: the glass is broken; the approvers are paged", run=run.id)
        self._need(request, self._to_approve(run), self._target(run))
        plan = self._meant(run, request.command.options.get("plan"))
        after = self._requests.approve(run.id, plan, request.actor, request.door)
        self._changed(run.id)
        missing = _missing(after)
        line = f"{run.id} approved" if not missing else f"{run.id}: {missing} more must approve"
        return done(line, data={"run": run.id, "missing": missing}, run=run.id)

    def _meant(self, run: Run, said: str | None) -> PlanHash | None:
        """The plan that is approved: a yes without its hash is a yes to the only one there was."""
        if said or run.plan is None:
            return PlanHash(said) if said else None
        if run.asks > 1:
            raise CannotDo(
                f"the plan of {run.id} was made again; see `status {run.id}` and, if that one is "
                f"right, `approve {run.id} --plan {run.plan.hash}`"
            )
        return run.plan.hash

    def _to_approve(self, run: Run) -> Permission:
        """A plan that only wants a go needs the runbook's own permission."""
        if run.plan is not None and run.plan.gate == PlanGate.CONFIRM:
            return self._requests.definition(run.runbook, run.version).runbook.permission
        return Permission.RUN_APPROVE

    def _deny(self, request: Request) -> Reply:
        run = self._known(request)
        self._need(request, self._to_approve(run), self._target(run))
        plan = request.command.options.get("plan")
        reason = f"{request.actor.id}: {request.command.rest(1) or 'no reason given'}"
        hash_ = PlanHash(plan) if plan else None
        after = self._requests.deny(run.id, hash_, request.actor, reason)
        self._changed(run.id)
        end = "nothing was done" if after.state.final else "it ends as its runbook says"
        return done(f"{run.id} denied; {end}", run=run.id)

    # -- holding back -------------------------------------------------------------------------

    def _halt(self, request: Request) -> Reply:
        command = request.command
        reason = command.rest(0)
        limit = command.options.get("clear-limit")
        if limit is not None:
            self._need(request, Permission.HALT_CLEAR, Target())
            self._requests.clear_limit(request.actor.id, limit, reason)
            return done(f"the limit {limit} is open again")
        if "clear" in command.flags:
            self._need(request, Permission.HALT_CLEAR, Target())
            self._requests.clear_halt(request.actor.id, f"{request.actor.id}: {reason}")
            self._answers.wake()
            return done("resumed: waiting runs go on")
        self._need(request, Permission.HALT_SET, Target())
        unrecorded: tuple[str, ...] = ()
        try:
            self._requests.halt(request.actor.id, f"{request.actor.id}: {reason}".strip(": "))
        except StoreError as problem:  # the file was written before, and the file is what counts
            unrecorded = (f"the halt stands, and could not be recorded: {problem}",)
        halted = "halted: no new effect begins, at any door"
        return done(halted, *unrecorded, *self._answers.under_way())

    def _hands_off(self, request: Request) -> Reply:
        command = request.command
        cluster, nodes = self._inventory.resolve(command.words[0], command.options.get("cluster"))
        self._need(request, Permission.HANDS_OFF_SET, self._inventory.target(cluster, nodes))
        if "clear" in command.flags:
            self._requests.hands_off(cluster, nodes.names, request.actor.id, None)
            return done(f"{nodes}: the label is gone")
        reason = command.rest(1)
        if not reason:
            raise Misread(f"say why. Usage: {VERBS[Verb.HANDS_OFF].usage}")
        said = f"{request.actor.id}: {reason}"
        self._requests.hands_off(cluster, nodes.names, request.actor.id, said)
        return done(f"hands off {nodes}: no runbook touches them")

    def _audit(self, request: Request) -> Reply:
        """Questions go on to the answers; confirming a run after a restore changes something."""
        words = request.command.words
        if words and words[0] == "anchor":
            self._need(request, Permission.AUDIT_MANAGE, Target())
            return self._answers.answer(request.actor, request.door, request.command)
        if not words or words[0] != "confirm":
            self._need(request, Permission.AUDIT_READ, Target())
            return self._answers.answer(request.actor, request.door, request.command)
        self._need(request, Permission.AUDIT_MANAGE, Target())
        if len(words) < 2:
            raise Misread('audit confirm RUN "reason", or audit confirm all "reason"')
        run = None if words[1] == "all" else self._answers.run(words[1]).id
        self._requests.confirm_restore(request.actor.id, run, request.command.rest(2))
        self._answers.wake()
        return done(f"{run or 'every run'} may act again")

    # -- checks -------------------------------------------------------------------------------

    def _known(self, request: Request) -> Run:
        return self._answers.run(request.command.words[0])

    def _target(self, run: Run) -> Target:
        return self._inventory.target(run.cluster, NodeSet(self._answers.nodes(run)))

    def _need(self, request: Request, permission: Permission | None, target: Target) -> None:
        """Ask the gate; a denial ends the request with its sentence."""
        if permission is None:
            return
        decision = self._gate.check(
            Question(actor=request.actor, permission=permission, target=target, door=request.door)
        )
        if isinstance(decision, Denied):
            raise _Refused(reply=_denied(decision, self._too_many(request)))
        elsewhere = self.elsewhere(request, target.cluster)
        if elsewhere:
            raise CannotDo(elsewhere)

    def _too_many(self, request: Request) -> tuple[str, ...]:
        """What is said to somebody whose refusals are only counted by now."""
        return (_TOO_MANY,) if self._gate.crowded(request.actor) else ()


def _denied(decision: Denied, more: tuple[str, ...]) -> Reply:
    return Reply(
        kind=ReplyKind.DENIED,
        lines=(decision.because, *more),
        data={
            "error": decision.because,
            "permission": decision.missing.value,
            "enough": list(decision.enough),
        },
    )


def _missing(run: Run) -> int:
    """How many approvals the present plan still lacks."""
    if run.plan is None or run.approved:
        return 0
    given = {entry.actor for entry in run.approvals if entry.hash == run.plan.hash}
    return max(1, run.plan.approvals_needed) - len(given)
