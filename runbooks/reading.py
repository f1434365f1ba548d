"""A step that only looks: the look itself, the waits between looks, and the built-ins.

Called by the engine only. Nothing here has an effect, so there is no intent and no recovery: a look
that was interrupted is made again.
"""

from actions.contract import Call, Done, Failed, FailureKind, Refusal, Unknown, Unreadable, Wait
from runbooks.acting import LONGEST_BLINDNESS, POLL
from runbooks.builtin import DIAGNOSE, TELL
from runbooks.diagnosis import as_output, diagnose
from runbooks.frames import Frames
from runbooks.journal import Journal
from runbooks.later import Later
from runbooks.next_step import Frame, Place
from runbooks.parts import Parts
from runbooks.reach import Reach


class Reading:
    """Carries out looks."""

    def __init__(self, parts: Parts, frames: Frames, journal: Journal) -> None:
        """Share the engine's parts."""
        self._parts = parts
        self._frames = frames
        self._journal = journal
        self._reach = Reach(parts, frames)

    def read(self, frame: Frame, place: Place) -> Later | None:
        """Look, or let the built-in decide."""
        spec = frame.specs[str(place.step.do)]
        if spec.name == DIAGNOSE.name:
            self._diagnose(frame, place)
            return None
        if spec.name == TELL.name:
            say = str(place.arguments.get("say", ""))
            name = f"{TELL.name}@{TELL.version}"
            self._journal.read(frame.run.id, place, name, {"say": say}, say)
            return None
        denied = self._reach.step(frame, place)
        if denied:
            self._journal.refuse(frame.run.id, place, denied, FailureKind.REFUSED.value)
            return None
        return self._look(frame, place, self._frames.call(frame, place, 0))

    def _look(self, frame: Frame, place: Place, call: Call) -> Later | None:
        run = frame.run
        spec = frame.specs[str(place.step.do)]
        blind = False
        try:
            outcome = self._parts.registry[spec.name].do(call)
        except Unreadable as problem:
            blind, outcome = True, Wait(until=self._parts.clock.now().wall + POLL, why=str(problem))
        except Refusal as problem:
            outcome = Failed(error=str(problem), kind=FailureKind.REFUSED)
        if isinstance(outcome, Unknown):
            # A look that cannot be read changed nothing: it is simply made again.
            blind, outcome = True, Wait(until=self._parts.clock.now().wall + POLL, why=outcome.why)
        match outcome:
            case Done(output=output):
                self._journal.read(run.id, place, f"{spec.name}@{spec.version}", output)
            case Wait():
                return self._wait_for(frame, place, outcome, blind=blind)
            case Failed(error=error, kind=kind):
                self._journal.refuse(run.id, place, error, kind.value)
        return None

    def _wait_for(self, frame: Frame, place: Place, wait: Wait, *, blind: bool) -> Later | None:
        """Look again later; a wait past its limit has failed, but never without a last look."""
        record = frame.run.steps.get(place.key)
        limit = place.step.time_limit or frame.specs[str(place.step.do)].time_limit
        if blind and place.step.time_limit is None:
            limit = max(limit, LONGEST_BLINDNESS)
        began = record.started_at if record is not None else None
        if began is not None and self._parts.clock.now().wall >= began + limit:
            why = f"not so within {int(limit.total_seconds())} s: {wait.why}"
            self._journal.refuse(frame.run.id, place, why, FailureKind.PERMANENT.value)
            return None
        self._journal.wait(frame.run, place, wait.until, wait.why)
        return Later(at=wait.until)

    def _diagnose(self, frame: Frame, place: Place) -> None:
        """The built-in that compares facts with the pinned causes; pure, so it needs no look."""
        name = str(place.arguments.get("causes", ""))
        facts = place.arguments.get("facts")
        causes = frame.definition.causes[name]
        found = diagnose(causes, dict(facts) if isinstance(facts, dict) else {})
        output = as_output(found)
        self._journal.read(
            frame.run.id, place, f"{DIAGNOSE.name}@{DIAGNOSE.version}", output, found.why
        )
