"""Plays a runbook against a described cluster, without touching one. Pure.

Called by `nodewarden runbook test` and by tests of runbooks. The description gives what the looks
would answer; every other step is only told. What the engine adds (permissions, locks, approvals,
limits) is not played.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NoReturn

from actions.contract import ActionSpec, ValueType
from config.json_values import Json, JsonMap
from config.yaml_reader import YamlProblems, read
from runbooks.builtin import ASKED, BUILTINS, DIAGNOSE
from runbooks.definition import Definition
from runbooks.diagnosis import as_output, diagnose
from runbooks.expressions import ExpressionError, evaluate, truth, value_of
from runbooks.model import Runbook, Step
from runbooks.problems import Problems, from_reader
from runbooks.shape import top
from runbooks.values import ParameterError, misfit, misfits, settle

_KEYS: Final = ("parameters", "answers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What is assumed of the world."""

    parameters: JsonMap = field(default_factory=dict)
    answers: Mapping[str, JsonMap] = field(default_factory=dict)
    """Output by name of action, `node.observe: {base: IDLE, …}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What one step would do."""

    step: str
    """Its id; `caller/id` inside a called runbook."""
    verb: str
    """looks, acts, calls, asks, skipped, person, wrong."""
    text: str
    """The action with its arguments, or why."""


class _Ended(Exception):
    """Nothing after this step would run."""


def read_description(text: str, source: str) -> Described:
    """A described cluster out of a file. Raises Problems."""
    try:
        table = top(read(text, source))
    except YamlProblems as error:
        raise Problems(from_reader(error.problems)) from error
    table.allow(_KEYS)
    answers = table.table("answers")
    described = Described(
        parameters=table.table("parameters").entries,
        answers={name: answers.table(name).entries for name in answers.entries},
    )
    if table.findings.problems:
        raise Problems(table.findings.problems)
    return described


def rehearse(
    definition: Definition, described: Described, registry: Mapping[str, ActionSpec]
) -> tuple[Told, ...]:
    """What each step would do, in order. Raises ParameterError for unfit parameters."""
    parameters = settle(definition.runbook, described.parameters)
    play = _Play(definition, described, {**registry, **BUILTINS})
    with suppress(_Ended):
        play.runbook(definition.runbook, parameters, "")
    return tuple(play.told)


class _Play:
    """One playing; `told` grows until the end or a step that ends it."""

    def __init__(
        self, definition: Definition, described: Described, specs: Mapping[str, ActionSpec]
    ) -> None:
        self._definition = definition
        self._described = described
        self._specs = specs
        self.told: list[Told] = []

    def runbook(self, runbook: Runbook, parameters: JsonMap, prefix: str) -> None:
        """The steps of one runbook; `prefix` names its caller."""
        steps: dict[str, Json] = {}
        for step in runbook.steps:
            key = f"{prefix}{step.id}"
            names: dict[str, Json] = {**parameters, "steps": steps}
            try:
                outputs = self._targets(step, names, key)
            except ExpressionError as error:
                self._end(key, "wrong", str(error))
            if outputs:
                whole: Json = outputs if step.for_each is not None else outputs[""]
                steps[step.id] = {"output": whole}

    def _targets(self, step: Step, names: JsonMap, key: str) -> dict[str, Json]:
        """Output by target; the one anonymous target is the empty text."""
        if step.for_each is None:
            return self._one(step, names, key, "")
        nodes = value_of(step.for_each, names)
        why = misfit(ValueType.NODES, nodes)
        if why or not isinstance(nodes, Sequence):
            raise ExpressionError(why, step.for_each)
        outputs: dict[str, Json] = {}
        for node in nodes:
            outputs |= self._one(step, {**names, "item": node}, f"{key}/{node}", str(node))
        return outputs

    def _one(self, step: Step, names: JsonMap, key: str, target: str) -> dict[str, Json]:
        if step.when is not None and not truth(step.when, names):
            self._tell(key, "skipped", f"not so: {step.when}")
            return {}
        if step.approve is not None:
            self._tell(key, "asks", str(evaluate(step.approve, names)))
            return {target: {}}
        arguments = evaluate(step.arguments, names)
        given = arguments if isinstance(arguments, Mapping) else {}
        if step.call is not None:
            return {target: self._call(step.call, given, key)}
        return {target: self._do(step.do or "", given, key)}

    def _call(self, name: str, given: JsonMap, key: str) -> Json:
        called = self._definition.called[name]
        self._tell(key, "calls", f"{called.name} v{called.version}")
        try:
            parameters = settle(called, given)
        except ParameterError as error:
            self._end(key, "wrong", str(error))
        self.runbook(called, parameters, f"{key}/")
        return {}

    def _do(self, name: str, given: JsonMap, key: str) -> Json:
        spec = self._specs[name]
        wrong = misfits(spec.parameters, given)
        if wrong:
            self._end(key, "wrong", "; ".join(wrong))
        if name in ASKED:
            self._end(key, "person", str(given.get("say", name)))
        if spec is DIAGNOSE:
            return self._diagnose(given, key)
        written = ", ".join(f"{word}={value}" for word, value in given.items())
        self._tell(key, "looks" if spec.looks_only else "acts", f"{name}({written})")
        return self._described.answers.get(name, {})

    def _diagnose(self, given: JsonMap, key: str) -> Json:
        facts = given.get("facts")
        causes = self._definition.causes[str(given.get("causes"))]
        found = diagnose(causes, facts if isinstance(facts, Mapping) else {})
        cause = f"{found.decided.id} {found.decided.title}" if found.decided else "no cause decides"
        self._tell(key, "looks", f"{cause}; {found.why}")
        return as_output(found)

    def _tell(self, key: str, verb: str, text: str) -> None:
        self.told.append(Told(step=key, verb=verb, text=text))

    def _end(self, key: str, verb: str, text: str) -> NoReturn:
        self._tell(key, verb, text)
        raise _Ended
