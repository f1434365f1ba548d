"""Holds runbooks against each other: what they call, with what, and that no call comes back. Pure.

Called by lint, after each file was read by itself.
"""

from collections.abc import Iterator, Mapping

from actions.contract import ActionSpec, Field
from config.yaml_reader import read
from runbooks.builtin import DIAGNOSE
from runbooks.causes import Causes
from runbooks.checks import Scene, check_arguments
from runbooks.model import Runbook, Step
from runbooks.problems import Findings, Problem
from runbooks.shape import shown, suggestion


def check_calls(
    runbook: Runbook,
    source: str,
    shelf: Mapping[str, Runbook],
    causes: Mapping[str, Causes],
    registry: Mapping[str, ActionSpec],
) -> tuple[Problem, ...]:
    """Problems of the `call:` and `diagnose` steps of one runbook."""
    findings = Findings(read(runbook.text, source))
    earlier: dict[str, Step] = {}
    for index, step in enumerate(runbook.steps):
        scene = Scene(runbook=runbook, earlier=earlier, registry=registry, findings=findings)
        path = ("steps", index)
        if step.call is not None:
            if step.call in shelf:
                fields = fields_of(shelf[step.call])
                check_arguments(step, fields, (*path, "with"), scene)
            else:
                findings.add(
                    (*path, "call"),
                    f"there is no runbook {shown(step.call)}{suggestion(step.call, shelf)}",
                )
            circle = next(_circles(runbook, step.call, shelf), None)
            if circle:
                findings.add((*path, "call"), f"the calls go in a circle: {' > '.join(circle)}")
        named = step.arguments.get("causes") if step.do == DIAGNOSE.name else None
        if isinstance(named, str) and named not in causes:
            findings.add(
                (*path, "with", "causes"),
                f"there are no causes {shown(named)}{suggestion(named, causes)}",
            )
        earlier[step.id] = step
    return tuple(findings.problems)


def fields_of(runbook: Runbook) -> Mapping[str, Field]:
    """The parameters of a runbook in the form in which actions declare theirs."""
    return {
        parameter.name: Field(type=parameter.type, help=parameter.help, required=parameter.required)
        for parameter in runbook.parameters
    }


def _circles(start: Runbook, first: str, shelf: Mapping[str, Runbook]) -> Iterator[tuple[str, ...]]:
    """Ways of calls that lead from `start` by `first` to `start` again."""
    seen: set[str] = set()
    ways: list[tuple[str, ...]] = [(start.name, first)]
    while ways:
        way = ways.pop()
        if way[-1] == start.name:
            yield way
            return
        if way[-1] in seen or way[-1] not in shelf:
            continue
        seen.add(way[-1])
        ways.extend((*way, step.call) for step in shelf[way[-1]].steps if step.call is not None)
