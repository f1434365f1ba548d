"""A run in words: the six lines that a person reads first, and one line for each step. Pure.

Slack's card, the command line and `--json` all show what is made here, so they never differ. Text
from outside stays as it is; the door that shows it escapes it (design 8).
"""

from dataclasses import dataclass
from datetime import date

from config.ids import RunId
from runbooks.card_lines import lines
from runbooks.machine import RunState
from runbooks.rails import PlanGate
from runbooks.run import Run, StepRecord, StepState
from runbooks.told import Told
from runbooks.wording import clocked, cut, minute, where

CLICKED = "clicked"
"""The reason that a click gives: nobody writes one on a phone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """A click that says a command."""

    label: str
    command: str
    """The same words that can be typed."""
    danger: bool = False
    confirm: str = ""
    """A question to be answered first; empty for none."""

    @property
    def typed(self) -> str:
        """The command for whoever types it: the reason is theirs to write."""
        bare = self.command.removesuffix(f" {CLICKED}")
        return self.command if bare == self.command else f'{bare} "reason"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A run as it is shown."""

    run: RunId
    revision: int
    state: RunState
    title: str
    lines: tuple[str, ...]
    """At most six, each at most 80 characters."""
    steps: tuple[str, ...]
    """One line for each step, for the thread and `status`."""
    buttons: tuple[Button, ...]
    rings: bool
    """Whether it must be a new message with a mention: an edit rings no phone."""

    @property
    def text(self) -> str:
        """The push notification: what is wrong, and whose job."""
        return " · ".join(self.lines[:2])


def card(run: Run, told: Told) -> Card:
    """The card of a run."""
    return Card(
        run=run.id,
        revision=run.revision,
        state=run.state,
        title=f"{_icon(run.state)} {run.id} {run.runbook} {where(run)}".rstrip(),
        lines=lines(run, told),
        steps=steps(run),
        buttons=_buttons(run, told.question),
        rings=run.state
        in {RunState.AWAITING_APPROVAL, RunState.NEEDS_PERSON, RunState.FAILED, RunState.PAUSED},
    )


def _buttons(run: Run, question: str) -> tuple[Button, ...]:
    """What can be clicked in this state; a finished card has no buttons."""
    asked = f" --step {question}" if question else ""
    plan = f" --plan {run.plan.hash}" if run.plan else ""
    abort = Button(label="Abort", command=f"abort {run.id}", danger=True)
    match run.state:
        case RunState.AWAITING_APPROVAL:
            confirm = run.plan is not None and run.plan.gate == PlanGate.CONFIRM
            return (
                Button(label="Go" if confirm else "Approve", command=f"approve {run.id}{plan}"),
                Button(label="Deny", command=f"deny {run.id}{plan}", danger=True),
            )
        case RunState.NEEDS_PERSON:
            return (
                Button(label="It is done", command=f"resume {run.id}{asked} --done {CLICKED}"),
                Button(label="Try again", command=f"resume {run.id}{asked} --not-done {CLICKED}"),
                abort,
            )
        case RunState.PAUSED:
            return (Button(label="Resume", command=f"resume {run.id}"), abort)
        case RunState.RUNNING | RunState.WAITING | RunState.REQUESTED:
            return (
                Button(label="Take over", command=f"takeover {run.id}"),
                Button(label="Pause", command=f"pause {run.id}"),
                abort,
            )
        case _:
            return ()


def steps(run: Run) -> tuple[str, ...]:
    """One line for each step that was begun; what was not needed stands in the audit log."""
    return tuple(
        _step(key, step) for key, step in run.steps.items() if step.state is not StepState.SKIPPED
    )


def _step(key: str, step: StepRecord) -> str:
    icon = _STEP_ICONS[step.state]
    ended = step.ended_at or step.started_at
    took = ""
    if step.started_at and step.ended_at and step.ended_at > step.started_at:
        took = f" ({(step.ended_at - step.started_at).total_seconds():.0f} s)"
    at = f"{minute(ended)} " if ended else ""
    why = f": {clocked(step.why, ended.date() if ended else date.min)}" if step.why else ""
    child = f" → {step.child}" if step.child else ""
    return cut(f"{icon} {at}{key}{child} {step.state.value}{took}{why}", 300)


_STEP_ICONS = {
    StepState.WAITING: "…",
    StepState.INTENDED: "▶",
    StepState.DONE: "✔",
    StepState.SKIPPED: "·",
    StepState.FAILED: "✘",
    StepState.UNKNOWN: "?",
    StepState.UNDONE: "↩",
}


def _icon(state: RunState) -> str:
    """A sign beside the word, never colour alone."""
    return {
        RunState.AWAITING_APPROVAL: "✋",
        RunState.NEEDS_PERSON: "🆘",
        RunState.SUCCEEDED: "✔",
        RunState.FAILED: "✘",
        RunState.CANCELLED: "■",
        RunState.EXPIRED: "■",
        RunState.UNDONE: "↩",
        RunState.PAUSED: "⏸",
    }.get(state, "▶")
