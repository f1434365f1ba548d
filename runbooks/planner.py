"""Makes a plan: walks what is left of a run, looks at every target, and writes it all down.

Called by the engine after the last step that only looks and at every `approve:` step. It looks and
never acts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from actions.contract import Action, ActionSpec, Call, Observation, Standing
from config.ids import ClusterName
from config.json_values import JsonMap
from config.node_names import NodeName
from runbooks.builtin import ASKED
from runbooks.expressions import ExpressionError, evaluate
from runbooks.model import Runbook, Step
from runbooks.places import BEHIND, Frame, Place, holds, place, steps_asked, targets
from runbooks.plan import Plan, PlannedStep
from runbooks.run import StepState, step_key
from runbooks.values import nodes_in

_BEHIND = BEHIND | {StepState.FAILED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An effect that may come: where, and whether it is known to."""

    key: str
    place: Place
    known: bool
    """Whether its arguments could be evaluated."""
    certain: bool


def items(frame: Frame, prefix: str = "") -> Iterator[Item]:
    """Every effect that is still ahead of this run, called runbooks included."""
    ran = {record.step for record in frame.run.steps.values() if record.state in _BEHIND}
    for step in frame.runbook.steps:
        if step.approve is not None or step.do in ASKED:
            continue
        if step.do is not None and frame.specs[step.do].looks_only:
            continue
        certain = steps_asked(step.when) <= ran
        for target in _targets(frame, step):
            yield from _items_at(frame, step, target, (prefix, certain))


def _targets(frame: Frame, step: Step) -> tuple[NodeName | None, ...]:
    try:
        return targets(frame, step)
    except ExpressionError:
        return ()


def _items_at(
    frame: Frame, step: Step, target: NodeName | None, known_of: tuple[str, bool]
) -> Iterator[Item]:
    """`known_of`: the path to this runbook, and whether all that its `when` asks about has run."""
    prefix, certain = known_of
    key = step_key(step.id, target, step.for_each is not None)
    record = frame.run.steps.get(key)
    if record is not None and record.state in _BEHIND:
        return
    try:
        # What a step ahead will leave is not known: `steps.hold is defined` is not "no" before it ran.
        if certain and not holds(frame, step, target):
            return
    except ExpressionError:
        certain = False
    try:
        here, known = place(frame, step, target), True
    except ExpressionError:
        here, known = Place(key=key, step=step, node=target), False
    if step.call is not None:
        yield from _items_of_call(frame, here, certain and known, f"{prefix}{key}/")
    else:
        yield Item(key=f"{prefix}{key}", place=here, known=known, certain=certain and known)


def _items_of_call(frame: Frame, here: Place, certain: bool, prefix: str) -> Iterator[Item]:
    """What the called runbook may do, as far as its parameters are known."""
    called = frame.definition.called[str(here.step.call)]
    given = with_defaults(called, here.arguments)
    run = replace(frame.run, parameters=given, steps={}, plan=None)
    inner = replace(frame, run=run, runbook=called, outputs={})
    for item in items(inner, prefix):
        yield item if certain else replace(item, certain=False)


def with_defaults(called: Runbook, given: JsonMap) -> JsonMap:
    """The parameters with which a called runbook begins."""
    defaults = {parameter.name: parameter.default for parameter in called.parameters}
    return {**defaults, **given}


def make_plan(
    frame: Frame,
    ahead: Sequence[Item],
    registry: Mapping[str, Action],
    call: Callable[[Place], Call],
    pinned: JsonMap,
) -> Plan:
    """The plan of what is ahead. Raises actions.contract.Unreadable when a look got no answer."""
    planned = []
    for item in ahead:
        spec = frame.specs[str(item.place.step.do)]
        seen = registry[spec.name].look(call(item.place)) if item.known else None
        planned.append(_entry(item, spec, seen))
    cause = diagnosis_of(frame)
    return Plan(
        steps=tuple(planned),
        locks=_locks(frame, planned),
        pinned=pinned,
        cause=str(cause.get("id") or ""),
        diagnosis=cause,
    )


_UNSEEN = Observation(standing=Standing.NOT_SO, why="")


def _entry(item: Item, spec: ActionSpec, seen: Observation | None) -> PlannedStep:
    found = seen or _UNSEEN
    return PlannedStep(
        key=item.key,
        step=item.place.step.id,
        action=f"{spec.name}@{spec.version}",
        node=item.place.node,
        arguments=item.place.arguments if item.known else None,
        certain=item.certain,
        standing=seen.standing.value if seen else "",
        why=found.why,
        boot_id=found.boot_id,
        owner=found.owner,
        state=found.state,
        reason=found.reason,
        jobs_end=found.jobs_end,
        takes_node_out=spec.takes_node_out,
        may_end_jobs=spec.may_end_jobs,
        persons=spec.persons,
    )


def diagnosis_of(frame: Frame) -> JsonMap:
    """Output of the runbook's `diagnose` step, empty where it has none or it has not run."""
    for step in frame.runbook.steps:
        if step.do == "diagnose":
            return frame.outputs.get(step.id, {})
    return {}


def _locks(frame: Frame, planned: list[PlannedStep]) -> tuple[str, ...]:
    """Resources of the plan: its nodes, and what the runbook names itself."""
    named = [f"node:{node}" for entry in planned for node in _touched(frame, entry)]
    for template in frame.runbook.locks:
        value = evaluate(template, {**frame.run.parameters, "steps": {}})
        named.extend(str(part) for part in (value if isinstance(value, list) else [value]))
    return tuple(sorted(set(named)))


def _touched(frame: Frame, entry: PlannedStep) -> tuple[NodeName, ...]:
    """The node of a planned step, and every other that its arguments name: those that it reserves."""
    spec = frame.specs[entry.action.partition("@")[0]]
    types = {name: field.type for name, field in spec.parameters.items()}
    own = () if entry.node is None else (entry.node,)
    return (*own, *nodes_in(types, entry.arguments or {}))


def atoms(
    cluster: ClusterName, locks: tuple[str, ...], members: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """What a lock really takes: a partition takes its nodes too, so the two exclude each other."""
    taken = set()
    for lock in locks:
        kind, _, name = lock.partition(":")
        taken.add(f"{cluster}/{lock}")
        if kind == "partition":
            taken.update(f"{cluster}/node:{node}" for node in members.get(name, ()))
    return tuple(sorted(taken))
