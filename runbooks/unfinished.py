"""Runs that got stuck in this process: an effect that does not return, a fault of our own.

Called by the worker at each tick. It only records and pages; it never acts on the cluster.
"""

from datetime import datetime, timedelta

from actions.contract import ActionSpec
from audit_log.ledger import Transaction
from config.ids import RunId
from config.permissions import Permission
from runbooks.in_hand import end_page
from runbooks.intents import Changed
from runbooks.journal import Finished, Journal
from runbooks.machine import IllegalTransition, Move
from runbooks.model import Step
from runbooks.next_step import Place
from runbooks.parts import Parts
from runbooks.run_events import STUCK, page_event
from runbooks.run_rows import load, select

GRACE = timedelta(minutes=11)
"""Past the limit of an effect, before an open intent that nobody settles goes to a person: longer
than a recovery waits for an answer, so that it is the last net and not a rival."""


class Unfinished:
    """The net under the engine."""

    def __init__(self, parts: Parts) -> None:
        """Over the engine's parts."""
        self._parts = parts
        self._journal = Journal(parts)

    def watch(self, now: datetime) -> None:
        """Hand over every intent that is long past its limit; a later outcome is recorded as late."""
        for run in select(self._parts.ledger.query, "open = 1"):
            key = run.intended
            if key is None:
                continue
            record = run.steps[key]
            if record.expires_at is None or now < record.expires_at + GRACE:
                continue
            spec = self._spec(record.action.partition("@")[0])
            place = Place(key=key, step=Step(id=record.step), node=record.node)
            finished = Finished("unknown", why=f"{spec.name} did not come back by its limit")
            self._journal.finish(run.id, place, spec, record.attempt, finished)

    def _spec(self, action: str) -> ActionSpec:
        """The contract of this action, or as much as is needed of one that this release lacks."""
        lost = ActionSpec(
            name=action, version=0, summary="", permission=Permission.NODE_READ, parameters={}
        )
        return self._parts.specs.get(action, lost)

    def tell_stuck(self, run: RunId) -> None:
        """Page about a run whose look or effect does not come back: it holds a thread and its locks."""
        why = "a look or an effect of it has not come back; while it hangs, nothing moves this run"

        def decide(transaction: Transaction) -> None:
            now = load(transaction, run)
            transaction.append(page_event(now, why, self._parts.ledger.instance, STUCK))

        self._parts.ledger.commit(decide)

    def tell_moving(self, run: RunId) -> None:
        """What hung has come back: nobody need come for that any more."""

        def decide(transaction: Transaction) -> None:
            now = load(transaction, run)
            end_page(transaction, now, "it came back", self._parts.ledger.instance, STUCK)

        self._parts.ledger.commit(decide)

    def give_to_person(self, run: RunId, problem: Exception) -> None:
        """A fault of ours: the run stops where it is, and somebody is told."""
        why = f"a fault in the bot itself ({type(problem).__name__}); its log has the details"
        try:
            self._journal.move(run, Move.ESCALATE, why)
        except (Changed, IllegalTransition):
            return
