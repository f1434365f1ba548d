"""One effect: permission, look, compare with the plan, intent, do, read back, outcome.

Called by the engine only. The order of the lines in `_attempt` is the promise (design 5): what
is committed before the effect and what after it decides what a crash can lose.
"""

import logging
from dataclasses import replace
from datetime import timedelta
from typing import assert_never

from actions.contract import (
    Action,
    ActionSpec,
    Done,
    Failed,
    FailureKind,
    Observation,
    Outcome,
    Refusal,
    Standing,
    Unknown,
    Unreadable,
    Wait,
)
from audit_log.restoration import MAY_ACT
from config.json_values import JsonMap
from runbooks.frames import Frames
from runbooks.intents import Intent, looked
from runbooks.journal import Finished, Journal
from runbooks.later import Later
from runbooks.machine import Move
from runbooks.next_step import Frame, Place
from runbooks.parts import Parts
from runbooks.plan import deviation
from runbooks.reach import Reach
from runbooks.run import StepRecord

log = logging.getLogger(__name__)

POLL = timedelta(seconds=5)
"""Between two looks while something is in the way."""
LONGEST_BLINDNESS = timedelta(minutes=10)
"""So long a look waits for an answer before a person is asked; a recovery counts from the limit of
the effect."""
MOST_ATTEMPTS = 3
"""Attempts of one effect, each after a fresh look and after the one before is dead."""


class Acting:
    """Carries out effects, one at a time for each run."""

    def __init__(self, parts: Parts, frames: Frames, journal: Journal) -> None:
        """Share the engine's parts."""
        self._parts = parts
        self._frames = frames
        self._journal = journal
        self._reach = Reach(parts, frames)

    def act(self, frame: Frame, place: Place) -> Later | None:
        """Do this step unless the world, the rights or the stop button say no."""
        action = self._parts.registry[str(place.step.do)]
        denied = self._reach.step(frame, place)
        if denied:
            self._journal.refuse(frame.run.id, place, denied, FailureKind.REFUSED.value)
            return None
        return self._attempt(frame, place, action, undoing=False)

    def undo(self, frame: Frame, key: str) -> Later | None:
        """Take back a done step; our own marks need no fresh permission (design 5)."""
        done = self._frames.place_of(frame, key)
        spec = frame.specs[str(done.step.do)]
        action = self._parts.registry[str(spec.undo)]
        return self._attempt(frame, done, action, undoing=True)

    def recover(self, frame: Frame, key: str) -> Later | None:
        """Find out what became of an open intent that nobody is carrying out."""
        record = frame.run.steps[key]
        place = self._frames.place_of(frame, key)
        action = self._parts.registry[record.action.partition("@")[0]]
        if not action.spec.observable and not action.spec.repeatable:
            why = f"{action.spec.name} was under way when the bot stopped; it cannot be looked at"
            return self._finish(frame, place, action, record.attempt, Finished("unknown", why=why))
        call = replace(
            self._frames.call(frame, place, record.attempt), intended_at=record.intended_at
        )
        try:
            seen = action.look(call)
        except (Unreadable, Refusal) as problem:
            return self._blind(frame, place, action, record, str(problem))
        return self._found(frame, place, action, record, seen)

    def _found(
        self, frame: Frame, place: Place, action: Action, record: StepRecord, seen: Observation
    ) -> Later | None:
        """What a look after an interruption means for the open intent."""
        spec, now = action.spec, self._parts.clock.now().wall
        foreign = seen.standing is Standing.FOREIGN and spec.sets_mark is None
        if seen.standing is Standing.OURS or foreign:
            finished = Finished(
                "undone" if record.undoing else "done",
                why=seen.why,
                output={"recovered": True, "seen": seen.why[:300]},
                mark_text=seen.reason,
            )
            return self._finish(frame, place, action, record.attempt, finished)
        if record.expires_at is not None and now < record.expires_at:
            return Later(at=min(record.expires_at, now + POLL))
        if not _same(record.looked, looked(seen)):
            why = f"after an interruption: was {_short(record.looked)}, is {_short(looked(seen))}"
            return self._finish(frame, place, action, record.attempt, Finished("unknown", why=why))
        if record.attempt >= MOST_ATTEMPTS:
            why = f"{record.attempt} attempts had no effect; {seen.why}"
            finished = Finished("failed", why=why, kind=FailureKind.PERMANENT.value)
            return self._finish(frame, place, action, record.attempt, finished)
        finished = Finished("again", why="had no effect before the interruption", until=now)
        return self._finish(frame, place, action, record.attempt, finished)

    def _blind(
        self, frame: Frame, place: Place, action: Action, record: StepRecord, why: str
    ) -> Later | None:
        """No answer to the look of a recovery: wait for one, but not for ever."""
        now = self._parts.clock.now().wall
        if record.expires_at is None or now < record.expires_at + LONGEST_BLINDNESS:
            return Later(at=now + POLL)
        finished = Finished("unknown", why=f"it cannot be found out whether it happened: {why}")
        return self._finish(frame, place, action, record.attempt, finished)

    def _attempt(
        self, frame: Frame, place: Place, action: Action, *, undoing: bool
    ) -> Later | None:
        run = frame.run
        record = run.steps.get(place.key)
        attempt = (record.attempt if record else 0) + 1
        held = self._held_back(frame)
        if held:
            return self._later(frame, place, held, undoing=undoing)
        try:
            seen = action.look(self._frames.call(frame, place, attempt))
        except Unreadable as problem:
            return self._no_answer(frame, place, str(problem))
        except Refusal as problem:
            return self._refuse(frame, place, str(problem), undoing=undoing)
        if seen.standing is not Standing.NOT_SO:
            return self._nothing_to_do(frame, place, action.spec, seen, undoing=undoing)
        moved = "" if undoing else self._moved(frame, place, seen)
        if moved:
            self._journal.void(run.id, moved)
            return None
        intent = self._intent(frame, place, action.spec, seen, undoing=undoing)
        plan = None if undoing else self._frames.plan_hash(frame, place.key)
        why = self._journal.intend(run.id, self._frames.root(run).id, intent, plan)
        if why:
            return self._refuse(frame, place, why, undoing=undoing)
        return self._do(frame, place, action, attempt, undoing=undoing)

    def _held_back(self, frame: Frame) -> str:
        """Why no effect may begin now: the stop button, or a restore that nobody confirmed."""
        halted = self._parts.halt.reason()
        if halted is not None:
            return _halted(halted)
        root = self._frames.root(frame.run).id
        if self._parts.ledger.query(MAY_ACT, (root,))[0][0]:
            return ""
        return f"the ledger was restored: an admin confirms with `audit confirm {root}` first"

    def _moved(self, frame: Frame, place: Place, seen: Observation) -> str:
        planned = self._frames.planned(frame, place.key)
        root = self._frames.root(frame.run)
        if planned is None:
            return "it is in no plan"
        if not planned.is_for(place.node, place.arguments):
            return f"{place.key} would be done with other arguments than those in the plan"
        return deviation(planned, seen, f"us:{root.id}")

    def _nothing_to_do(
        self, frame: Frame, place: Place, spec: ActionSpec, seen: Observation, *, undoing: bool
    ) -> Later | None:
        """Already so, or in somebody else's hands, or impossible: nothing is written."""
        hands_off = seen.standing is Standing.FOREIGN and spec.sets_mark is not None
        if seen.standing is Standing.BLOCKED or hands_off:
            return self._refuse(frame, place, seen.why, undoing=undoing)
        by = "us" if seen.standing is Standing.OURS else "another"
        output: JsonMap = {"already": by, "nothing_done": True, "seen": seen.why[:300]}
        if undoing:
            self._journal.settle(frame.run.id, place, spec, Finished("undone", why=seen.why))
        else:
            name = f"{spec.name}@{spec.version}"
            self._journal.read(frame.run.id, place, name, output, seen.why)
        return None

    def _intent(
        self, frame: Frame, place: Place, spec: ActionSpec, seen: Observation, *, undoing: bool
    ) -> Intent:
        run = frame.run
        record = run.steps.get(place.key)
        pool, nodes = None, {}
        if place.node is not None and (spec.takes_node_out or spec.may_end_jobs):
            pool = self._parts.policy.pool_of(run.cluster, place.node)
            nodes = self._parts.clusters[run.cluster].snapshot().nodes
        return Intent(
            place=place,
            spec=spec,
            attempt=(record.attempt if record else 0) + 1,
            seen=seen,
            expires_at=self._parts.clock.now().wall + spec.time_limit,
            pool=pool,
            nodes=nodes,
            instance=self._parts.ledger.instance,
            undoing=undoing,
        )

    def _do(
        self, frame: Frame, place: Place, action: Action, attempt: int, *, undoing: bool
    ) -> Later | None:
        """The effect. From here on the intent is durable, and a crash is found by `recover`."""
        halted = self._parts.halt.reason()
        if halted is not None:
            until = self._parts.clock.now().wall + POLL
            finished = Finished("again", why=_halted(halted), until=until)
            return self._finish(frame, place, action, attempt, finished)
        call = self._frames.call(frame, place, attempt)
        try:
            outcome = action.do(call)
        except Exception as problem:  # after the intent, any fault is an unknown outcome
            log.exception("%s of %s failed in its own code", action.spec.name, frame.run.id)
            outcome = Unknown(why=f"{type(problem).__name__} inside {action.spec.name}")
        return self._outcome(frame, place, action, attempt, (outcome, undoing))

    def _outcome(
        self,
        frame: Frame,
        place: Place,
        action: Action,
        attempt: int,
        result: tuple[Outcome, bool],
    ) -> Later | None:
        outcome, undoing = result
        now = self._parts.clock.now().wall
        finished: Finished
        match outcome:
            case Done(output=output, mark_text=text):
                word = "undone" if undoing else "done"
                finished = Finished(word, output=output, mark_text=text)
            case Wait(until=until, why=why):
                finished = Finished("again", why=why, until=until)
            case Failed(error=error, kind=FailureKind.RETRYABLE) if attempt < MOST_ATTEMPTS:
                finished = Finished("again", why=error, until=now + POLL * 2**attempt)
            case Failed(error=error, kind=kind, restore=restore):
                why = f"{error}; to restore: {restore}" if restore else error
                finished = Finished("failed", why=why, kind=kind.value)
            case Unknown(why=why):
                if action.spec.observable or action.spec.repeatable:
                    # The intent stays open: a look will tell, once the effect cannot happen any more.
                    return Later(at=now + POLL)
                finished = Finished("unknown", why=why)
            case _:
                assert_never(outcome)
        return self._finish(frame, place, action, attempt, finished)

    def _finish(
        self, frame: Frame, place: Place, action: Action, attempt: int, finished: Finished
    ) -> Later | None:
        self._journal.finish(frame.run.id, place, action.spec, attempt, finished)
        return Later(at=finished.until) if finished.until else None

    def _refuse(self, frame: Frame, place: Place, why: str, *, undoing: bool) -> Later | None:
        if undoing:
            text = f"{place.key} cannot be taken back: {why}"
            self._journal.move(frame.run.id, Move.ESCALATE, text)
        else:
            self._journal.refuse(frame.run.id, place, why, FailureKind.REFUSED.value)
        return None

    def _no_answer(self, frame: Frame, place: Place, why: str) -> Later | None:
        """Wait for an answer, but not for ever: then a person is told."""
        now = self._parts.clock.now().wall
        record = frame.run.steps.get(place.key)
        since = record.blind_since if record is not None else None
        if since is not None and now >= since + LONGEST_BLINDNESS:
            text = f"{place.key}: no answer since {since:%H:%M} UTC: {why}"
            self._journal.move(frame.run.id, Move.ESCALATE, text)
            return None
        until = now + POLL
        self._journal.wait(frame.run, place, until, f"no answer to believe: {why}", blind=True)
        return Later(at=until)

    def _later(self, frame: Frame, place: Place, why: str, *, undoing: bool) -> Later:
        until = self._parts.clock.now().wall + POLL
        if not undoing:  # a step that is to be taken back stays done until it is
            self._journal.wait(frame.run, place, until, why)
        return Later(at=until)


def _halted(reason: str) -> str:
    return f"halted: {reason or 'no reason given'}; an admin resumes with `halt --clear`"


def _same(before: JsonMap, now: JsonMap) -> bool:
    """Whether the node is as it was when the intent was made; ages in sentences do not count."""
    return all(before.get(key) == now.get(key) for key in _COMPARED)


_COMPARED = ("standing", "boot_id", "owner", "state", "reason")


def _short(seen: JsonMap) -> str:
    parts = [str(seen.get(key, "")) for key in ("state", "reason", "boot_id", "owner")]
    return " / ".join(part for part in parts if part) or "nothing"
