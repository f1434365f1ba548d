"""What a run does next: one decision from its fold and its pinned definition. Pure.

The engine carries out exactly one `Next` at a time and asks again, so a run that was killed
anywhere is continued by asking this function once more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from actions.contract import ActionSpec
from config.ids import RunId
from config.json_values import Json, JsonMap
from config.node_names import NodeName
from runbooks.builtin import DECIDE_PERSON
from runbooks.definition import Definition
from runbooks.expressions import ExpressionError, evaluate, truth, value_of
from runbooks.machine import RunState
from runbooks.model import OnFailure, Runbook, Step
from runbooks.run import Run, StepRecord, StepState, step_key
from runbooks.values import misfits


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A step for one target."""

    key: str
    step: Step
    node: NodeName | None
    arguments: JsonMap = field(default_factory=dict)


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
PERSON = DECIDE_PERSON.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """All that a decision depends on."""

    run: Run
    definition: Definition
    runbook: Runbook
    """The definition's own, or one of those it calls, for a child run."""
    specs: Mapping[str, ActionSpec]
    outputs: Mapping[str, JsonMap]
    """Outputs by step key, artefacts read."""
    plan_keys: frozenset[str]
    """Keys that the present plan covers with known arguments, for this run."""
    plan_ready: bool
    """Whether the plan in force (the caller's for a child) may be carried out."""
    locked: bool
    """Whether the locks of the plan in force are held."""
    called_past_return: bool = False
    """Whether a run that it called began a step that cannot be turned back from."""


def next_step(frame: Frame) -> Next:
    """The one thing to do now. Raises ExpressionError when the runbook cannot be evaluated."""
    run = frame.run
    intended = run.intended
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


def names(frame: Frame) -> dict[str, Json]:
    """What expressions may refer to: parameters, and the outputs of the steps that ran."""
    steps: dict[str, Json] = {}
    for step in frame.runbook.steps:
        if step.for_each is not None:
            outputs: dict[str, Json] = {
                record.node: frame.outputs.get(key, {})
                for key, record in frame.run.steps.items()
                if record.step == step.id and record.node and record.state is StepState.DONE
            }
            if outputs:
                steps[step.id] = {"output": outputs}
        else:
            record = frame.run.steps.get(step.id)
            if record is not None and record.state is StepState.DONE:
                steps[step.id] = {"output": frame.outputs.get(step.id, {})}
    return {**frame.run.parameters, "steps": steps}


def targets(frame: Frame, step: Step) -> tuple[NodeName | None, ...]:
    """Nodes of a `for_each`, or the one anonymous target. Raises ExpressionError."""
    if step.for_each is None:
        return (None,)
    value = value_of(step.for_each, names(frame))
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ExpressionError("for_each does not give a list of nodes", f"step {step.id}")
    return tuple(NodeName(str(name)) for name in value)


def place(frame: Frame, step: Step, target: NodeName | None) -> Place:
    """The step for this target with its arguments evaluated. Raises ExpressionError."""
    scope = names(frame)
    if target is not None:
        scope["item"] = target
    arguments = evaluate(dict(step.arguments), scope)
    if not isinstance(arguments, dict):
        raise ExpressionError("the arguments are not a mapping", f"step {step.id}")
    if step.do is not None:
        wrong = misfits(frame.specs[step.do].parameters, arguments)
        if wrong:
            raise ExpressionError("; ".join(wrong), f"step {step.id}")
    node = target if target is not None else _node(arguments)
    key = step_key(step.id, target, step.for_each is not None)
    return Place(key=key, step=step, node=node, arguments=arguments)


def holds(frame: Frame, step: Step, target: NodeName | None) -> bool:
    """Whether the step's `when` holds. Raises ExpressionError."""
    if step.when is None:
        return True
    scope = names(frame)
    if target is not None:
        scope["item"] = target
    return truth(step.when, scope)


def _asked_of_person(here: Place) -> str:
    """What a person is to decide, with the first thing to consider."""
    say = str(here.arguments.get("say", "a person decides"))
    suggest = here.arguments.get("suggest")
    return f"{say} First: {suggest}" if suggest else say


def _node(arguments: Mapping[str, Json]) -> NodeName | None:
    node = arguments.get("node")
    return NodeName(node) if isinstance(node, str) else None


def _at_step(frame: Frame, step: Step) -> Next | None:
    """What this step still needs, None when it is behind the run."""
    failed: list[StepRecord] = []
    for target in targets(frame, step):
        key = step_key(step.id, target, step.for_each is not None)
        record = frame.run.steps.get(key)
        if record is not None and record.state is StepState.FAILED:
            failed.append(record)
            if len(failed) >= step.stop_after:
                break
            continue
        if record is not None and record.state in _BEHIND:
            continue
        return _at_target(frame, step, target, record)
    return _given_up(frame, step, failed) if failed else None


_BEHIND = frozenset({StepState.DONE, StepState.SKIPPED, StepState.UNDONE})


def _given_up(frame: Frame, step: Step, failed: list[StepRecord]) -> Next:
    """What the runbook says about targets that failed for good."""
    first = failed[0]
    where = f" on {first.node}" if first.node else ""
    more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
    how = frame.runbook.on_failure
    if how is OnFailure.UNDO and past_return(frame):
        how = OnFailure.ESCALATE
    return GiveUp(how=how, why=f"{step.id}{where}{more}: {first.why}")


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
    if step.do == PERSON:
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
