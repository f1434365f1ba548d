"""What a run does next: one decision from its fold and its pinned definition. Pure.

The engine carries out exactly one `Next` at a time and asks again, so a run that was killed
anywhere is continued by asking this function once more.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from actions.contract import ActionSpec
from config.ids import RunId
from config.node_names import NodeName
from runbooks.builtin import ASKED, FENCE_CONFIRM
from runbooks.machine import RunState
from runbooks.model import OnFailure, Runbook, Step
from runbooks.places import Frame, Place, holds, keys_at, passed, place, targets
from runbooks.run import Run, StepRecord, StepState, step_key

__all__ = [
    "Act",
    "CallRunbook",
    "Finish",
    "Frame",
    "GiveUp",
    "MakePlan",
    "NeedPerson",
    "Next",
    "PassApproval",
    "Place",
    "Read",
    "Recover",
    "Skip",
    "Stop",
    "TakeLocks",
    "TakeOver",
    "UndoStep",
    "Undone",
    "began_last",
    "given_up",
    "left_behind",
    "next_step",
    "past_return",
    "to_take_back",
    "undoes",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Look; no plan, no intent."""

    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """Its `when` does not hold."""

    place: Place
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRunbook:
    """Start the child run, or take over its result."""

    place: Place
    child: RunId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MakePlan:
    """Write down all that may happen from here on, and ask whom it needs."""

    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PassApproval:
    """An `approve:` step whose plan has its yes."""

    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeLocks:
    """All of the plan's locks, or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """Look, compare, intend, do, read back."""

    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Recover:
    """An intent is open and nobody is carrying it out: look before anything else."""

    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoStep:
    """Take back what this step did."""

    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeOver:
    """Take over what the run that this step called has left behind, in order to take it back."""

    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Every step is behind it."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    """A step failed for good; `how` is what the runbook says about that."""

    how: OnFailure
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """Nothing is left to take back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A person asked for a stop, and the run is at a step boundary."""

    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedPerson:
    """The runbook itself says that a person decides."""

    place: Place
    why: str


Next = (
    Read
    | Skip
    | CallRunbook
    | MakePlan
    | PassApproval
    | TakeLocks
    | Act
    | Recover
    | UndoStep
    | TakeOver
    | Finish
    | GiveUp
    | Undone
    | Stop
    | NeedPerson
)

OBSERVE = "observe"
"""The gate of a plan that is only told (`runbooks.rails.PlanGate`)."""


def next_step(frame: Frame) -> Next:
    """The one thing to do now. Raises ExpressionError when the runbook cannot be evaluated."""
    run = frame.run
    intended = next(iter(keys_at(frame, StepState.INTENDED)), None)
    if intended is not None:
        return Recover(key=intended)
    if run.state is RunState.UNDOING:
        return _undo(frame)
    if run.stop_wanted:
        return Stop(how=run.stop_wanted)
    for step in frame.runbook.steps:
        found = _at_step(frame, step)
        if isinstance(found, MakePlan) and run.plan is not None and run.plan.gate == OBSERVE:
            return Finish(why=f"only told, nothing done: {run.plan.summary}")
        if found is not None:
            return found
    return Finish(why="")


def _asked_of_person(here: Place) -> str:
    """What a person is to decide, with the first thing to consider."""
    if here.step.do == FENCE_CONFIRM.name:
        return (
            f"is it certain that {here.node} writes nothing any more? Say done, and how you know: "
            "its power is off, its disks and links are gone. Otherwise abort"
        )
    say = str(here.arguments.get("say", "a person decides"))
    suggest = here.arguments.get("suggest")
    return f"{say}. First: {suggest}" if suggest else say


def _at_step(frame: Frame, step: Step) -> Next | None:
    """What this step still needs, None when it is behind the run."""
    nodes, done = targets(frame, step), passed(frame, step)
    if done.count < len(nodes) and len(done.failed) < step.stop_after:
        target = nodes[done.count]
        record = frame.run.steps.get(step_key(step.id, target, step.for_each is not None))
        return _at_target(frame, step, target, record)
    return _given_up(frame, step, done.failed) if done.failed else None


def _given_up(frame: Frame, step: Step, failed: tuple[StepRecord, ...]) -> Next:
    """What the runbook says about targets that failed for good."""
    first = failed[0]
    where = f" on {first.node}" if first.node else ""
    more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
    return given_up(frame, f"{step.id}{where}{more}: {first.why}")


def given_up(frame: Frame, why: str) -> GiveUp:
    """The run cannot go on, as its runbook says."""
    how = frame.runbook.on_failure
    if how is OnFailure.UNDO and past_return(frame):
        how = OnFailure.ESCALATE
    return GiveUp(how=how, why=why)


def past_return(frame: Frame) -> bool:
    """Whether a step that cannot be turned back from was begun, here or in a called run."""
    return frame.called_past_return or began_last(frame.runbook, frame.run)


def began_last(runbook: Runbook, run: Run) -> bool:
    """Whether this very run began a step that cannot be turned back from."""
    return any(
        step.point_of_no_return
        for step in runbook.steps
        for key, record in run.steps.items()
        if record.step == step.id and record.attempt > 0 and "/" not in key
    )


def _at_target(
    frame: Frame, step: Step, target: NodeName | None, record: StepRecord | None
) -> Next:
    begun = record is not None and (record.attempt > 0 or record.child is not None)
    if not begun and not holds(frame, step, target):
        where = Place(
            key=step_key(step.id, target, step.for_each is not None), step=step, node=target
        )
        return Skip(place=where, why=f"not needed: {step.when}")
    if step.approve is not None:
        return _at_approval(frame, step)
    here = place(frame, step, target)
    if step.call is not None:
        if not frame.plan_ready:
            return MakePlan(at="")
        if not frame.locked:
            return TakeLocks()
        return CallRunbook(place=here, child=record.child if record else None)
    if step.do in ASKED:
        return NeedPerson(place=here, why=_asked_of_person(here))
    if frame.specs[str(step.do)].looks_only:
        return Read(place=here)
    if not frame.plan_ready or here.key not in frame.plan_keys:
        return MakePlan(at="")
    if not frame.locked:
        return TakeLocks()
    return Act(place=here)


def _at_approval(frame: Frame, step: Step) -> Next:
    plan = frame.run.plan
    if plan is None or plan.at != step.id or not frame.plan_ready:
        return MakePlan(at=step.id)
    return PassApproval(place=Place(key=step.id, step=step, node=None))


def _undo(frame: Frame) -> Next:
    """The last effect that can be taken back, or that nothing is left."""
    if frame.run.stop_wanted:
        return Stop(how=frame.run.stop_wanted)
    key = to_take_back(frame.run, frame.specs)
    if key is None:
        return Undone()
    return UndoStep(key=key) if frame.run.steps[key].child is None else TakeOver(key=key)


def to_take_back(run: Run, specs: Mapping[str, ActionSpec]) -> str | None:
    """The last step that left something which can be taken back; None when nothing is left."""
    return next(
        (key for key, record in reversed(tuple(run.steps.items())) if _leaves(record, specs)), None
    )


def _leaves(record: StepRecord, specs: Mapping[str, ActionSpec]) -> bool:
    """Whether this step left something behind that can be taken back."""
    if record.child is not None:
        return record.state is not StepState.UNDONE
    if record.state is not StepState.DONE or record.output.get("nothing_done"):
        return False
    return undoes(record, specs) is not None


def left_behind(run: Run, specs: Mapping[str, ActionSpec]) -> tuple[tuple[str, StepRecord], ...]:
    """Steps of a run that has ended which its caller has to take back, or to ask about."""
    return tuple(
        (key, record)
        for key, record in run.steps.items()
        if _leaves(record, specs)
        or (
            record.state is StepState.UNKNOWN
            and (record.undoing or undoes(record, specs) is not None)
        )
    )


def undoes(record: StepRecord, specs: Mapping[str, ActionSpec]) -> str | None:
    """Name of the action that takes this step back."""
    spec = specs.get(record.action.partition("@")[0])
    return spec.undo if spec is not None else None
