"""Contracts of a few actions, as far as the language needs them, and small texts to vary."""

from collections.abc import Mapping

from actions.contract import ActionSpec, Field, ValueType
from config.permissions import Permission
from runbooks.facts import NODE_FACTS
from runbooks.load import load_runbook
from runbooks.model import Runbook
from runbooks.problems import Problem, Problems

_NODE = Field(type=ValueType.NODE, help="node to act on")
_FACT_TYPES = {"base": ValueType.TEXT, "flags": ValueType.FACTS, "gpus_seen": ValueType.NUMBER}


def _spec(name: str, parameters: Mapping[str, Field], **rest: object) -> ActionSpec:
    return ActionSpec(
        name=name,
        version=1,
        summary=f"{name} for tests",
        permission=Permission.NODE_DRAIN,
        parameters=parameters,
        **rest,  # type: ignore[arg-type]
    )


def _text(help_: str, *, required: bool = True) -> Field:
    return Field(type=ValueType.TEXT, help=help_, required=required)


_UNIT = Field(type=ValueType.UNIT, help="systemd unit")

REGISTRY: Mapping[str, ActionSpec] = {
    spec.name: spec
    for spec in (
        _spec(
            "node.observe",
            {"node": _NODE},
            looks_only=True,
            output={
                name: Field(type=_FACT_TYPES.get(name, ValueType.FACTS), help=help_)
                for name, help_ in NODE_FACTS.items()
            },
        ),
        _spec("node.drain", {"node": _NODE, "reason": _text("why")}, undo="node.return"),
        _spec("node.return", {"node": _NODE}),
        _spec("node.await", {"node": _NODE, "condition": _text("what")}, looks_only=True),
        _spec("evidence.save", {"node": _NODE}, looks_only=True),
        _spec("service.start", {"node": _NODE, "unit": _UNIT}),
        _spec("service.restart", {"node": _NODE, "unit": _UNIT}),
        _spec(
            "page.send",
            {
                "summary": _text("one line"),
                "level": Field(type=ValueType.NUMBER, help="how far up", required=False),
            },
        ),
    )
}

RUNBOOK = """\
runbook: mend
version: 1
title: Mend a node
permission: node.repair
parameters:
  node: {type: node, help: the node}
  nodes: {type: nodes, help: several, required: false}
  why: {type: text, help: a reason, default: none given}
locks: ["node:{{ node }}"]
steps:
  - id: facts
    do: node.observe
    with: {node: "{{ node }}"}
  - id: hold
    when: steps.facts.output.base == "IDLE"
    do: node.drain
    with: {node: "{{ node }}", reason: "{{ why }}"}
on_failure: stop
"""


def problems_of(text: str) -> tuple[Problem, ...]:
    """What is wrong with a runbook; empty when it is accepted."""
    try:
        load_runbook(text, "mend.yaml", REGISTRY)
    except Problems as error:
        return error.problems
    return ()


def with_step(step: str) -> str:
    """The runbook above with one more step at the end; its first line has no indent."""
    lines = step.strip("\n").splitlines()
    body = "".join(f"  {'- ' if not index else '  '}{line}\n" for index, line in enumerate(lines))
    return RUNBOOK.replace("on_failure: stop\n", f"{body}on_failure: stop\n")


def mend() -> Runbook:
    """The runbook above."""
    return load_runbook(RUNBOOK, "mend.yaml", REGISTRY)
