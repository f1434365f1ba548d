"""Holds a read runbook against the contracts of the actions it uses. Pure; called by `runbooks.load`.

What can be known before a run is said before a run: at night an expression that names nothing must
not be found in the middle of a repair.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from actions.contract import ActionSpec, Field, ValueType
from config.json_values import Json
from config.yaml_reader import Path
from runbooks.builtin import BUILTINS, DIAGNOSE
from runbooks.expression_tree import ExpressionError
from runbooks.expressions import (
    is_sole_expression,
    names_used,
    sole_name,
    template_names,
)
from runbooks.model import OnFailure, Runbook, Step
from runbooks.problems import Findings
from runbooks.shape import shown, suggestion
from runbooks.values import kind, misfit

_WRITTEN_AS_TEXT = frozenset({ValueType.NODE, ValueType.UNIT, ValueType.JOB, ValueType.DURATION})
_FREE_TEXT = frozenset({ValueType.TEXT, ValueType.UNIT, ValueType.DURATION})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What a step may refer to, and with what it is compared."""

    runbook: Runbook
    earlier: Mapping[str, Step]
    registry: Mapping[str, ActionSpec]
    findings: Findings

    def spec(self, step: Step) -> ActionSpec | None:
        """The contract of a `do:` step, if it is known."""
        name = step.do or ""
        return BUILTINS.get(name) or self.registry.get(name)


def check_runbook(runbook: Runbook, registry: Mapping[str, ActionSpec], findings: Findings) -> None:
    """Note every problem of the steps, locks and the rule for failure."""
    earlier: dict[str, Step] = {}
    for index, step in enumerate(runbook.steps):
        path: Path = ("steps", index)
        scene = Scene(runbook=runbook, earlier=earlier, registry=registry, findings=findings)
        if step.id in earlier:
            first = earlier[step.id].line
            findings.add((*path, "id"), f"the id {step.id} stands twice; first in line {first}")
        _check_step(step, path, scene)
        earlier[step.id] = step
    bare = Scene(runbook=runbook, earlier={}, registry=registry, findings=findings)
    for index, lock in enumerate(runbook.locks):
        _check_template(lock, ("locks", index), None, bare)
    _check_undo(bare)


def _check_step(step: Step, path: Path, scene: Scene) -> None:
    for key, expression in (("when", step.when), ("for_each", step.for_each)):
        if expression is not None:
            inside = step if key == "when" else None
            _check_expression(expression, (*path, key), inside, scene)
    if step.approve is not None:
        _check_template(step.approve, (*path, "approve"), None, scene)
    for name, template in step.arguments.items():
        _check_template(template, (*path, "with", name), step, scene)
    if step.do is not None:
        _check_action(step, path, scene)
    if step.for_each is not None:
        _check_loop(step, path, scene)


def _check_action(step: Step, path: Path, scene: Scene) -> None:
    spec = scene.spec(step)
    if spec is None:
        known = [*scene.registry, *BUILTINS]
        scene.findings.add(
            (*path, "do"),
            f"there is no action {shown(step.do or '')}{suggestion(step.do or '', known)}",
        )
        return
    check_arguments(step, spec.parameters, (*path, "with"), scene)
    if spec is DIAGNOSE and template_names(step.arguments.get("causes", "")):
        scene.findings.add(
            (*path, "with", "causes"), "must be written out: the run stores the file it names"
        )


def check_arguments(step: Step, fields: Mapping[str, Field], path: Path, scene: Scene) -> None:
    """Note missing, unknown and unfit arguments of an action or of a called runbook."""
    for name, template in step.arguments.items():
        if name in fields:
            _check_type(template, fields[name], (*path, name), scene)
        else:
            scene.findings.add((*path, name), f"unknown argument{suggestion(name, fields)}")
    for name, field in fields.items():
        if field.required and name not in step.arguments:
            scene.findings.add(path, f"the argument {name} is missing: {field.help}")


def _check_loop(step: Step, path: Path, scene: Scene) -> None:
    """Each target of a loop is journaled by itself, so each must name its own node."""
    try:
        used = any(_root(name) == "item" for name in template_names(step.arguments))
    except ExpressionError:
        return
    spec = scene.spec(step)
    acts = spec is not None and not spec.looks_only
    if acts and sole_name(step.arguments.get("node")) != "item":
        scene.findings.add((*path, "with"), 'an acting step in for_each needs node: "{{ item }}"')
    elif not used:
        scene.findings.add(
            (*path, "for_each"), "no argument uses {{ item }}: every target would do the same"
        )


def _check_template(template: Json, path: Path, step: Step | None, scene: Scene) -> None:
    try:
        names = template_names(template)
    except ExpressionError as error:
        scene.findings.add(path, str(error))
        return
    _check_names(names, path, step, scene)


def _check_expression(source: str, path: Path, step: Step | None, scene: Scene) -> None:
    try:
        names = names_used(source)
    except ExpressionError as error:
        scene.findings.add(path, str(error))
        return
    _check_names(names, path, step, scene)


def _check_names(names: Iterable[str], path: Path, step: Step | None, scene: Scene) -> None:
    for name in sorted(names):
        why = _why_unknown(name, step, scene)
        if why:
            scene.findings.add(path, why)


def _why_unknown(name: str, step: Step | None, scene: Scene) -> str:
    root, *keys = name.split(".")
    if root == "steps":
        return _why_unknown_step(keys, scene)
    if root == "item":
        in_loop = step is not None and step.for_each is not None
        return "" if in_loop else "item has a value only in a step with for_each"
    if scene.runbook.parameter(root) is None:
        known = [parameter.name for parameter in scene.runbook.parameters]
        return f"there is no name {shown(root)}{suggestion(root, [*known, 'steps'])}"
    return ""


def _why_unknown_step(keys: list[str], scene: Scene) -> str:
    if not keys:
        return "steps alone has no value: write steps.<id>.output"
    found = scene.earlier.get(keys[0])
    if found is None:
        return _why_no_such_step(keys[0], scene)
    if len(keys) > 1 and keys[1] != "output":
        return f"a step has only an output: write steps.{keys[0]}.output"
    spec = scene.spec(found)
    if spec is None or not spec.output or len(keys) < 3 or found.for_each is not None:  # noqa: PLR2004  id, output, key
        return ""
    if keys[2] in spec.output:
        return ""
    return f"{spec.name} gives no {shown(keys[2])}{suggestion(keys[2], spec.output)}"


def _why_no_such_step(wanted: str, scene: Scene) -> str:
    ids = [str(step.id) for step in scene.runbook.steps]
    if wanted in ids:
        return f"the step {wanted} has no output yet: only earlier steps have one, locks see none"
    hyphened = [step_id for step_id in ids if step_id.startswith(f"{wanted}-")]
    if hyphened:
        return f'an id with a hyphen is written steps["{hyphened[0]}"]'
    return f"there is no step {shown(wanted)}{suggestion(wanted, ids)}"


def _check_type(template: Json, field: Field, path: Path, scene: Scene) -> None:
    """What can be said of the type before there is a value."""
    try:
        names = template_names(template)
        given = _type_of(template, scene) if names else None
    except ExpressionError:
        return
    if not names:
        why = "" if template is None and not field.required else misfit(field.type, template)
        if why:
            scene.findings.add(path, why)
    elif given is not None and not _fits(given, field.type):
        scene.findings.add(path, f"expected {field.type}, but {shown(str(template))} is {given}")
    elif isinstance(template, str) and not is_sole_expression(template):
        if field.type not in _FREE_TEXT:
            scene.findings.add(
                path,
                f'expected {field.type}: a text around {{{{ }}}} makes it text; write "{{{{ … }}}}" alone',
            )
    elif not isinstance(template, str) and field.type not in {ValueType.FACTS, ValueType.NODES}:
        scene.findings.add(path, f"expected {field.type}, not {kind(template)}")


def _type_of(template: Json, scene: Scene) -> ValueType | None:
    """The declared type of what `{{ a.b }}` names, where one is declared."""
    name = sole_name(template)
    if name is None:
        return None
    root, *keys = name.split(".")
    if root == "item":
        return ValueType.NODE
    if root != "steps":
        parameter = scene.runbook.parameter(root)
        return parameter.type if parameter is not None and not keys else None
    found = scene.earlier.get(keys[0]) if keys else None
    spec = scene.spec(found) if found is not None and found.for_each is None else None
    if spec is None or keys[1:2] != ["output"]:
        return None
    if len(keys) == 2:  # noqa: PLR2004
        return ValueType.FACTS
    field = spec.output.get(keys[2])
    return field.type if field is not None and len(keys) == 3 else None  # noqa: PLR2004


def _fits(given: ValueType, wanted: ValueType) -> bool:
    if given == wanted or (given is ValueType.NODES and wanted is ValueType.FACTS):
        return True
    return wanted is ValueType.TEXT and given in _WRITTEN_AS_TEXT


def _root(name: str) -> str:
    return name.split(".", 1)[0]


def _check_undo(scene: Scene) -> None:
    """`on_failure: undo` promises something; each effect before the point of no return must keep it."""
    if scene.runbook.on_failure is not OnFailure.UNDO:
        return
    for index, step in enumerate(scene.runbook.steps):
        if step.point_of_no_return:
            return
        spec = scene.spec(step)
        if spec is not None and not spec.looks_only and spec.undo is None:
            scene.findings.add(
                ("steps", index),
                f"{spec.name} cannot be undone: mark point_of_no_return, or choose stop or escalate",
            )
