"""Where a run stands: all that one decision depends on, and the steps that it is about. Pure.

Made by `runbooks.frames`, decided on by `runbooks.next_step` and `runbooks.planner`. What was found
out about a run that goes on is kept in `Known`, so that a move costs what changed since the last one
and not what the whole run holds: a row of a thousand nodes is walked once, not a thousand times.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from actions.contract import ActionSpec
from config.ids import StepId
from config.json_values import Json, JsonMap
from config.node_names import NodeName
from runbooks.definition import Definition
from runbooks.expressions import ExpressionError, evaluate, names_used, truth, value_of
from runbooks.model import Runbook, Step
from runbooks.run import Run, StepRecord, StepState, step_key
from runbooks.values import misfits

BEHIND = frozenset({StepState.DONE, StepState.SKIPPED, StepState.UNDONE})
_PASSED = BEHIND | {StepState.FAILED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A step for one target."""

    key: str
    step: Step
    node: NodeName | None
    arguments: JsonMap = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """How far a step has come with its targets, in their order."""

    count: int = 0
    """Targets at the beginning that are behind the run or failed."""
    failed: tuple[StepRecord, ...] = ()
    """Those of them that failed."""


@dataclass(slots=True, kw_only=True)
class Known:
    """What was found out about one run, as long as it holds."""

    outputs: dict[StepId, Json] = field(default_factory=dict)
    """`{"output": …}` of a step, as expressions see it."""
    spread: dict[StepId, tuple[NodeName | None, ...]] = field(default_factory=dict)
    """Targets of a step."""
    passed: dict[StepId, Passed] = field(default_factory=dict)
    at: dict[StepState, set[str]] = field(default_factory=dict)
    """Keys of the steps that are intended or failed; empty until somebody asked."""

    def share(self, other: "Known") -> None:
        """Know what the other knows, now and from here on."""
        self.outputs, self.spread, self.passed = other.outputs, other.spread, other.passed
        self.at = other.at

    def change(self, runbook: Runbook, before: Run, after: Run, keys: Iterable[str]) -> None:
        """Forget what may not hold any more once these steps are as they are in `after`."""
        for key in keys:
            was, now = before.steps.get(key), after.steps[key]
            self.outputs.pop(now.step, None)
            for step in runbook.steps:
                if now.step in steps_asked(step.for_each):
                    self.spread.pop(step.id, None)
                    self.passed.pop(step.id, None)
            stays = was is not None and was.state is now.state and now.state in BEHIND
            if was is not None and was.state in _PASSED and not stays:
                self.passed.pop(now.step, None)
            for state, found in self.at.items():
                (found.add if now.state is state else found.discard)(key)


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
    known: Known = field(default_factory=Known, init=False, compare=False, repr=False)
    """Found out while it is decided; a frame that is made out of another begins with nothing."""


def keys_at(frame: Frame, state: StepState) -> frozenset[str]:
    """Keys of the steps that are intended, or of those that failed."""
    found = frame.known.at
    if not found:
        found |= {StepState.INTENDED: set(), StepState.FAILED: set()}
        for key, record in frame.run.steps.items():
            if record.state in found:
                found[record.state].add(key)
    return frozenset(found[state])


class _Steps(Mapping[str, Json]):
    """`steps` as expressions see it: an output is put together when it is asked for."""

    def __init__(self, frame: Frame) -> None:
        """Over the steps of this frame that ran."""
        self._frame = frame

    def __getitem__(self, name: str) -> Json:
        """`{"output": …}`. Raises KeyError for a step that did not run."""
        known = self._frame.known.outputs
        key = StepId(name)
        if key not in known:
            known[key] = self._output(name)
        return known[key]

    def _output(self, name: str) -> Json:
        frame, step = self._frame, self._frame.runbook.step(name)
        if step is not None and step.for_each is not None:
            found: dict[str, Json] = {
                record.node: frame.outputs.get(key, {})
                for key, record in frame.run.steps.items()
                if record.step == step.id and record.node and record.state is StepState.DONE
            }
            if found:
                return {"output": found}
        elif step is not None:
            record = frame.run.steps.get(step.id)
            if record is not None and record.state is StepState.DONE:
                return {"output": frame.outputs.get(step.id, {})}
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        """Ids of the steps that have an output."""
        return (step.id for step in self._frame.runbook.steps if step.id in self)

    def __len__(self) -> int:
        """How many have one."""
        return sum(1 for _ in self)


def names(frame: Frame) -> dict[str, Json]:
    """What expressions may refer to: parameters, and the outputs of the steps that ran."""
    return {**frame.run.parameters, "steps": _Steps(frame)}


def targets(frame: Frame, step: Step) -> tuple[NodeName | None, ...]:
    """Nodes of a `for_each`, or the one anonymous target. Raises ExpressionError."""
    if step.for_each is None:
        return (None,)
    found = frame.known.spread.get(step.id)
    if found is None:
        found = frame.known.spread[step.id] = _spread(frame, step, step.for_each)
    return found


def _spread(frame: Frame, step: Step, expression: str) -> tuple[NodeName, ...]:
    value = value_of(expression, names(frame))
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ExpressionError("for_each does not give a list of nodes", f"step {step.id}")
    return tuple(NodeName(str(name)) for name in value)


def passed(frame: Frame, step: Step) -> Passed:
    """How far this step has come; it ends where enough targets have failed. Raises ExpressionError."""
    nodes, known = targets(frame, step), frame.known.passed.get(step.id, Passed())
    count, failed = known.count, list(known.failed)
    while count < len(nodes) and len(failed) < step.stop_after:
        record = frame.run.steps.get(step_key(step.id, nodes[count], step.for_each is not None))
        if record is None or record.state not in _PASSED:
            break
        if record.state is StepState.FAILED:
            failed.append(record)
        count += 1
    if count != known.count:
        known = frame.known.passed[step.id] = Passed(count=count, failed=tuple(failed))
    return known


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


@lru_cache(maxsize=4096)
def steps_asked(expression: str | None) -> frozenset[str]:
    """Ids of the steps that a bare expression asks about."""
    parts = (name.split(".") for name in names_used(expression or "true"))
    return frozenset(part[1] for part in parts if part[0] == "steps" and len(part) > 1)


def _node(arguments: Mapping[str, Json]) -> NodeName | None:
    node = arguments.get("node")
    return NodeName(node) if isinstance(node, str) else None
