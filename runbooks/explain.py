"""A run in words: the six lines that a person reads first, and one line for each step. Pure.

Slack's card, the command line and `--json` all show what is made here, so they never differ. Text
from outside stays as it is; the door that shows it escapes it (design 8).
"""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from config.ids import ActorId, RunId
from config.json_values import Json, JsonMap
from config.node_names import fold
from runbooks.machine import RunState
from runbooks.plan import Plan
from runbooks.rails import PlanGate
from runbooks.run import Run, StepRecord, StepState, run_nodes

WIDTH = 80
"""Characters of a line on a phone (design 8)."""
MOST_LINES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """A click that says a command."""

    label: str
    command: str
    """The same words that can be typed."""
    danger: bool = False
    confirm: str = ""
    """A question to be answered first; empty for none."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Everything beside the run that its card tells."""

    plan: Plan
    outputs: Mapping[str, JsonMap]
    """Outputs of steps by key, artefacts read."""
    name: Callable[[ActorId], str]
    page: str = ""
    """What became of the page about this run, in a few words; empty where none was owed."""
    question: str = ""
    """What a person is asked (`runbooks.stops.question`); empty where it is only whether to go on."""
    now: datetime


def card(run: Run, told: Told) -> Card:
    """The card of a run."""
    *lines, stands = [line for line in _lines(run, told) if line]
    room = MOST_LINES - min(len(lines), MOST_LINES - 1)
    return Card(
        run=run.id,
        revision=run.revision,
        state=run.state,
        title=f"{_icon(run.state)} {run.id} {run.runbook} {_where(run)}".rstrip(),
        lines=(*(cut(line) for line in lines[: MOST_LINES - 1]), *_wrapped(stands, room)),
        steps=steps(run),
        buttons=_buttons(run, told.question),
        rings=run.state
        in {RunState.AWAITING_APPROVAL, RunState.NEEDS_PERSON, RunState.FAILED, RunState.PAUSED},
    )


def cut(text: str, width: int = WIDTH) -> str:
    """Text on one line of at most `width` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= width else f"{flat[: width - 1]}…"


def _wrapped(text: str, most: int) -> list[str]:
    """What is to be done next, over as many lines as the others have left."""
    rows = textwrap.wrap(" ".join(text.split()), WIDTH) or [""]
    return rows if len(rows) <= most else [*rows[: most - 1], cut(" ".join(rows[most - 1 :]))]


def _lines(run: Run, told: Told) -> list[str]:
    facts = _facts(told.outputs)
    return [
        _wrong(run, facts, told),
        _jobs(run, facts, told.plan),
        _cause(told.outputs, facts),
        _evidence(told.outputs),
        _checkpoint(facts),
        _stands(run, told),
    ]


def _facts(outputs: Mapping[str, JsonMap]) -> JsonMap:
    """The output that describes a node, empty before it was looked at."""
    for output in outputs.values():
        if "base" in output and "flags" in output:
            return output
    return {}


def _diagnosis(outputs: Mapping[str, JsonMap]) -> JsonMap:
    for output in outputs.values():
        if "evidence" in output and "not_ruled_out" in output:
            return output
    return {}


def _wrong(run: Run, facts: JsonMap, told: Told) -> str:
    """What is wrong and since when."""
    where = _where(run)
    if not facts:
        return f"{where}: {run.title}, asked by {told.name(run.requested_by)}"
    since = _clock(facts.get("slurmd_since"))
    state = str(facts.get("state") or facts.get("base"))
    reason = str(facts.get("reason") or "")
    unit = facts.get("slurmd_state")
    down = f", slurmd {unit} since {since}" if since and unit not in {None, "active"} else ""
    said = f", Reason: {reason}" if reason else ""
    verb = "was" if _repaired(run) else "is"
    return f"{where} {verb} {state}{down}{said}"


def _jobs(run: Run, facts: JsonMap, plan: Plan) -> str:
    """Which job, whose, how many GPUs, and when it dies if nobody acts."""
    jobs = [job for job in _list(facts.get("jobs")) if isinstance(job, Mapping)]
    if not facts:
        ended = plan.jobs_end
        return f"Ends {len(ended)} jobs: {', '.join(loss.job for loss in ended)}" if ended else ""
    if not jobs:
        return "No job is on it"
    first = max(jobs, key=lambda job: int(str(job.get("gpus") or 0)))
    more = f" and {len(jobs) - 1} more" if len(jobs) > 1 else ""
    dies = _clock(facts.get("dies_at_earliest"))
    latest = _clock(facts.get("dies_at_latest")) or dies
    dying = (
        f"would have died by {latest}" if _repaired(run) else f"dies from {dies} on if nobody acts"
    )
    name = cut(str(first.get("name", "")), 20)
    whose = f"{first.get('user')}, {first.get('gpus')} GPUs"
    return f"Job {first.get('id')} {name} ({whose}){more}{f'; {dying}' if dies else ''}"


def _cause(outputs: Mapping[str, JsonMap], facts: JsonMap) -> str:
    """The cause, and whether it is one node or many."""
    found = _diagnosis(outputs)
    if not found:
        return ""
    dropped = int(str(facts.get("dropped_recently") or 0))
    many = f"{dropped} nodes dropped" if dropped > 1 else "one node"
    if found.get("id"):
        return f"{found['id']} {found.get('title')} ({many})"
    return f"No cause decides ({many}): {found.get('why')}"


def _evidence(outputs: Mapping[str, JsonMap]) -> str:
    """The two strongest facts."""
    return "; ".join(str(fact) for fact in _list(_diagnosis(outputs).get("evidence"))[:2])


def _checkpoint(facts: JsonMap) -> str:
    """Age and place of the last checkpoint, as far as it is known."""
    jobs = [job for job in _list(facts.get("jobs")) if isinstance(job, Mapping)]
    if not jobs:
        return ""
    gpus = sum(int(str(job.get("gpus") or 0)) for job in jobs)
    return f"Checkpoint: not watched; {gpus} GPUs at stake"


def _stands(run: Run, told: Told) -> str:
    """What the bot has done (often nothing), how it stands, and the safe next action."""
    did = effects(run, StepState.DONE)
    if _repaired(run):
        return f"{_next(run, told)}{_survivors(told.outputs)}"
    if run.state is RunState.SUCCEEDED or (not did and not run.state.final):
        return _next(run, told)
    return f"{_next(run, told)}; changed {', '.join(did) if did else 'nothing'}"


def _survivors(outputs: Mapping[str, JsonMap]) -> str:
    """Jobs that were on the node before and still are, without a restart; needs a second look."""
    looks = [output for output in outputs.values() if "base" in output and "flags" in output]
    if len(looks) < 2:
        return ""
    before, after = (
        {_job(job) for job in _list(look.get("jobs"))} for look in (looks[0], looks[-1])
    )
    stayed = sorted(before & after)
    if not stayed:
        return ""
    named = ", ".join(f"{number} (Restarts {restarts})" for number, restarts in stayed[:3])
    more = f" and {len(stayed) - 3} more" if len(stayed) > 3 else ""
    return f"; job {named}{more} goes on"


def _job(job: Json) -> tuple[str, str]:
    """What must stay the same for a job to have survived: its id and its restarts."""
    entry = job if isinstance(job, Mapping) else {}
    return str(entry.get("id")), str(entry.get("restarts"))


def _repaired(run: Run) -> bool:
    """Whether what was found is past; a run that only told leaves everything as it is."""
    return run.state is RunState.SUCCEEDED and bool(effects(run, StepState.DONE))


def effects(run: Run, state: StepState) -> list[str]:
    """What was really done, as `node.drain gpu-017`."""
    return [
        " ".join(part for part in (step.action.partition("@")[0], step.node) if part)
        for step in run.steps.values()
        if step.attempt and step.state is state
    ]


def _next(run: Run, told: Told) -> str:
    """How it stands, and the safe next action."""
    why = run.why
    match run.state:
        case RunState.AWAITING_APPROVAL:
            plan = run.plan
            until = _minute(plan.expires_at) if plan else ""
            who = _who_approves(run)
            return f"Waits for {who} until {until}: {why}"
        case RunState.NEEDS_PERSON:
            paged = f" ({told.page})" if told.page else ""
            return f"NEEDS A PERSON{paged}: {why}"
        case RunState.SUCCEEDED:
            return f"Finished {_minute(run.ended_at)}: {why}"
        case RunState.FAILED:
            return f"FAILED {_minute(run.ended_at)}: {why}"
        case RunState.CANCELLED | RunState.EXPIRED | RunState.UNDONE:
            return f"{run.state.value.capitalize()} {_minute(run.ended_at)}: {why}"
        case RunState.WAITING:
            return f"Waits: {why}"
        case RunState.PAUSED:
            return f"Paused: {why}"
        case _:
            return _working(run)


def _working(run: Run) -> str:
    now = effects(run, StepState.INTENDED)
    if now:
        return f"Doing: {', '.join(now)}"
    return "Taking back" if run.state is RunState.UNDOING else "Looking"


def _who_approves(run: Run) -> str:
    plan = run.plan
    if plan is None or plan.gate == PlanGate.CONFIRM:
        return "a go"
    given = len({entry.actor for entry in run.approvals if entry.hash == plan.hash})
    left = plan.approvals_needed - given
    return f"{left} other {'person' if left == 1 else 'persons'}"


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
                Button(label="It is done", command=f"resume {run.id}{asked} --done clicked"),
                Button(label="Try again", command=f"resume {run.id}{asked} --not-done clicked"),
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
    took = ""
    if step.started_at and step.ended_at and step.ended_at > step.started_at:
        took = f" ({(step.ended_at - step.started_at).total_seconds():.0f} s)"
    at = f"{_minute(step.ended_at or step.started_at)} " if step.ended_at or step.started_at else ""
    why = f": {step.why}" if step.why else ""
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


def _where(run: Run) -> str:
    return fold(run_nodes(run)) or run.cluster


def _list(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list | tuple) else ()


def _clock(value: Json) -> str:
    """HH:MM of an ISO time in an output; empty where there is none."""
    if not isinstance(value, str) or len(value) < 16:
        return ""
    return f"{value[11:16]} UTC"


def _minute(moment: datetime | None) -> str:
    return f"{moment:%H:%M} UTC" if moment else ""
