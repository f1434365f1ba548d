"""What a run would do, without asking for it: the same decisions and the same looks, no records.

Called by `plan` and `--dry-run`. It goes as far as the plan, or as far as a step that would wait.
"""

from dataclasses import dataclass, replace

from actions.contract import Done, Failed, Refusal, Unreadable
from config.json_values import JsonMap
from runbooks.builtin import DIAGNOSE, TELL
from runbooks.definition import Definition
from runbooks.diagnosis import as_output, diagnose
from runbooks.expressions import ExpressionError
from runbooks.frames import EMPTY_PLAN, Frames
from runbooks.next_step import (
    Finish,
    Frame,
    GiveUp,
    MakePlan,
    NeedPerson,
    Next,
    Place,
    Read,
    Skip,
    next_step,
)
from runbooks.parts import Parts
from runbooks.plan import Plan
from runbooks.planner import diagnosis_of, items
from runbooks.rails import Needed, PlanGate, lacking, needed
from runbooks.run import Run, StepRecord, StepState

MOST_STEPS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Previewed:
    """How far it came and what it would do."""

    run: Run
    """With its read steps, for the card."""
    outputs: dict[str, JsonMap]
    plan: Plan
    needed: Needed
    ends: str
    """Why it stopped where it did, one sentence."""


class Preview:
    """Plays a run up to its plan."""

    def __init__(self, parts: Parts) -> None:
        """Over the engine's parts, of which it writes to none."""
        self._parts = parts
        self._frames = Frames(parts)

    def play(self, run: Run, definition: Definition) -> Previewed:
        """Look for real and stop before the first effect."""
        frame = Frame(
            run=run,
            definition=definition,
            runbook=definition.runbook,
            specs=self._parts.specs,
            outputs={},
            plan_keys=frozenset(),
            plan_ready=False,
            locked=False,
        )
        for _ in range(MOST_STEPS):
            try:
                move = next_step(frame)
            except ExpressionError as problem:
                return self._end(frame, f"the runbook cannot go on: {problem}")
            if isinstance(move, MakePlan):
                return self._planned(frame)
            after = self._one(frame, move)
            if isinstance(after, str):
                return self._end(frame, after)
            frame = after
        return self._end(frame, "it has too many steps to preview")

    def _one(self, frame: Frame, move: Next) -> Frame | str:
        """The frame after one step that changes nothing, or why there is none."""
        match move:
            case Read(place=place):
                return self._read(frame, place)
            case Skip(place=place, why=why):
                return _with(frame, place, StepState.SKIPPED, {}, why)
            case NeedPerson(why=why):
                return f"a person decides: {why}"
            case GiveUp(why=why):
                return why
            case Finish():
                return "nothing needs to be done"
            case _:
                return "it would go on from here"

    def _read(self, frame: Frame, place: Place) -> Frame | str:
        name = str(place.step.do)
        if name == TELL.name:
            return _with(frame, place, StepState.DONE, dict(place.arguments), "")
        if name == DIAGNOSE.name:
            facts = place.arguments.get("facts")
            causes = frame.definition.causes[str(place.arguments.get("causes", ""))]
            found = diagnose(causes, dict(facts) if isinstance(facts, dict) else {})
            return _with(frame, place, StepState.DONE, as_output(found), found.why)
        try:
            outcome = self._parts.registry[name].do(self._frames.call(frame, place, 0))
        except (Unreadable, Refusal) as problem:
            return f"{place.step.id} gets no answer: {problem}"
        if isinstance(outcome, Done):
            return _with(frame, place, StepState.DONE, outcome.output, "")
        if isinstance(outcome, Failed):
            return f"{place.step.id}: {outcome.error}"
        return f"{place.step.id} would wait: {outcome.why}"

    def _planned(self, frame: Frame) -> Previewed:
        try:
            plan = self._frames.fresh_plan(frame, tuple(items(frame)))
        except (Unreadable, Refusal) as problem:
            return self._end(frame, f"no plan can be made: {problem}")
        told = diagnosis_of(frame)
        autonomy = self._parts.policy.autonomy_of(
            frame.run.runbook,
            str(told.get("id") or ""),
            str(told.get("autonomy") or ""),
            asked_by_person=True,
        )
        lacks = lacking(plan, frame.run.cluster, self._parts.policy.lacks)
        who = needed(plan, autonomy, self._parts.policy.site.limits, lacks=lacks)
        return self._result(frame, plan, who, who.why)

    def _end(self, frame: Frame, why: str) -> Previewed:
        nobody = Needed(gate=PlanGate.NONE, persons=0, why=why)
        return self._result(frame, EMPTY_PLAN, nobody, why)

    def _result(self, frame: Frame, plan: Plan, who: Needed, why: str) -> Previewed:
        return Previewed(
            run=frame.run, outputs=dict(frame.outputs), plan=plan, needed=who, ends=why
        )


def _with(frame: Frame, place: Place, state: StepState, output: JsonMap, why: str) -> Frame:
    record = StepRecord(step=place.step.id, node=place.node, state=state, output=output, why=why)
    run = replace(frame.run, steps={**frame.run.steps, place.key: record})
    return replace(frame, run=run, outputs={**frame.outputs, place.key: output})
