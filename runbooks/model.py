"""What a runbook is, once it was read and checked: values only.

Made by `runbooks.load`, pinned in a run by `runbooks.definition`, carried out by the engine.
Expressions stay raw text here; `runbooks.expressions` evaluates them when a step is due.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from actions.contract import ValueType
from config.ids import StepId
from config.json_values import Json
from config.permissions import Permission


class OnFailure(StrEnum):
    """What a run does when a step has failed for good."""

    UNDO = "undo"
    """Take back what this run did, last first, as far as the point of no return."""
    STOP = "stop"
    """Leave everything as it is; the run has failed."""
    ESCALATE = "escalate"
    """Leave everything as it is and page a person, who decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """What a request must or may give."""

    name: str
    type: ValueType
    help: str
    required: bool = True
    default: Json = None
    """Taken when nothing was given; None and not `required`: the name stands for null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step: exactly one of `do`, `call` and `approve` is set."""

    id: StepId
    do: str | None = None
    """Name of an action or of a built-in of the engine (`runbooks.builtin`)."""
    call: str | None = None
    """Name of a runbook that is carried out as a child run."""
    approve: str | None = None
    """A sentence (a template): here the plan is made again and asked for."""
    arguments: Mapping[str, Json] = field(default_factory=dict)
    """As written under `with:`, expressions not yet evaluated."""
    when: str | None = None
    """A bare expression that must give a boolean."""
    for_each: str | None = None
    """A bare expression that gives node names; `item` stands for each in turn."""
    at_most: int = 1
    """So many targets of `for_each` at the same time."""
    stop_after: int = 1
    """So many failed targets end the step."""
    time_limit: timedelta | None = None
    """None: the limit of the action's own contract."""
    point_of_no_return: bool = False
    """Once this step was begun, nothing before it is undone."""
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Runbook:
    """One version of one runbook."""

    name: str
    version: int
    title: str
    permission: Permission
    """Needed to start it; each step also needs the permission of its action."""
    parameters: tuple[Parameter, ...] = ()
    locks: tuple[str, ...] = ()
    """Raw templates; each gives one name of a resource, or a list of them."""
    steps: tuple[Step, ...] = ()
    on_failure: OnFailure = OnFailure.STOP
    text: str
    """The file, whole, as it is stored with each run."""
    digest: str
    """SHA-256 (hex) over the UTF-8 bytes of `text`."""

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of this name."""
        return next((entry for entry in self.parameters if entry.name == name), None)

    def step(self, step_id: str) -> Step | None:
        """The step with this id."""
        return next((step for step in self.steps if step.id == step_id), None)
