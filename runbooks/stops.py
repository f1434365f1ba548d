"""How a stop reaches a run and everything that it called, inside one transaction.

Called by `runbooks.requests`. A run that acts is only asked: the engine stops it at its next step
boundary, undoes where the runbook says so, and keeps its locks until what it called has ended.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from actions.contract import ActionSpec
from audit_log.ledger import Transaction
from audit_log.records import Event, EventKind
from config.ids import ActorId, InstanceId, RunId
from config.json_values import JsonMap
from runbooks.in_hand import pages_over
from runbooks.machine import Move, RunState
from runbooks.next_step import to_take_back
from runbooks.run import Run, StepState
from runbooks.run_rows import load


class CannotDo(Exception):
    """It was allowed and cannot be done; the message says why and what can be done instead."""


AT_REST = {
    Move.WANT_ABORT: Move.ABORT,
    Move.WANT_PAUSE: Move.PAUSE,
    Move.WANT_TAKEOVER: Move.ESCALATE,
}
"""What a stop means for a run that is not being carried out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Who wants it, why, and in which ledger."""

    actor: ActorId
    reason: str
    instance: InstanceId


def ask_to_stop(transaction: Transaction, run: Run, how: Move, asked: Asked) -> Run:
    """Stop this run and, with an abort, what it called. Raises CannotDo.

    What it called needs no pause of its own: it begins nothing while its caller does not act.
    """
    if run.state.final:
        raise CannotDo(f"{run.id} is {run.state} already: {run.why}")
    if run.state is RunState.UNDOING and how is not Move.WANT_TAKEOVER:
        raise CannotDo(
            f"{run.id} is taking back what it did; `takeover {run.id}` hands the rest to you"
        )
    if how is Move.WANT_ABORT:
        for called in _open_below(transaction, run.id):
            if called.state is not RunState.UNDOING:
                _stop(transaction, called, how, replace(asked, reason=f"{run.id} was stopped"))
    _stop(transaction, run, how, asked)
    return load(transaction, run.id)


def _stop(transaction: Transaction, run: Run, how: Move, asked: Asked) -> None:
    wanted = state_event(run, how, asked)
    taken_over = how is Move.WANT_TAKEOVER
    if run.state is RunState.NEEDS_PERSON or taken_over:
        pages_over(transaction, run, asked.reason, asked.instance)
    if taken_over:
        for called in _open_below(transaction, run.id):
            pages_over(transaction, called, asked.reason, asked.instance)
    if run.state.acts or (taken_over and run.state is RunState.NEEDS_PERSON):
        transaction.append(wanted)
    elif how is Move.WANT_ABORT and _has_to_be_ended(transaction, run):
        if run.state is not RunState.AWAITING_APPROVAL:
            again = Move.RESUME if run.state is RunState.PAUSED else Move.RESOLVE
            transaction.append(state_event(run, again, asked))
        transaction.append(wanted)
    else:
        transaction.append(state_event(run, AT_REST[how], asked))


def _has_to_be_ended(transaction: Transaction, run: Run) -> bool:
    """Whether an abort at rest is more than a word: an open effect, a called run, or an undo.

    A run that needs a person is not undone by itself: what it could not find out is not guessed.
    """
    if run.intended is not None or any(_open_below(transaction, run.id)):
        return True
    return run.acted and run.state is not RunState.NEEDS_PERSON


def _open_below(transaction: Transaction, run: RunId) -> Iterator[Run]:
    """Open runs that this one called, the innermost first."""
    for (name,) in transaction.query(
        "SELECT id FROM runs WHERE parent = ? AND open = 1 ORDER BY number", (run,)
    ):
        yield from _open_below(transaction, RunId(name))
        yield load(transaction, RunId(name))


def in_question(run: Run, specs: Mapping[str, ActionSpec]) -> str | None:
    """The step that a person must speak about; None where the only question is whether to go on."""
    for key, step in run.steps.items():
        if step.state is StepState.UNKNOWN:
            return key
    if run.turned_back:
        last = to_take_back(run, specs)
        return last if last is None or run.steps[last].child is None else None
    for state in (StepState.FAILED, StepState.WAITING):
        for key, step in run.steps.items():
            if step.state is state and not (step.child and state is StepState.WAITING):
                return key
    return None


def question(run: Run, specs: Mapping[str, ActionSpec]) -> str:
    """Name of the question that a person is asked now: the step and its attempt; empty for none."""
    key = in_question(run, specs)
    return f"{key}:{run.steps[key].attempt}" if key is not None else ""


def state_event(run: Run, move: Move, asked: Asked) -> Event:
    """The record of a move that somebody asked for."""
    data: JsonMap = {"move": move.value, "why": asked.reason[:1000]}
    return asked_event(EventKind.RUN_STATE, run, asked.actor, data)


def asked_event(kind: EventKind, run: Run, actor: ActorId, data: JsonMap) -> Event:
    """A record about a run in the name of whoever asked."""
    return Event(kind=kind, actor=actor, run=run.id, cluster=run.cluster, data=data)
