"""The lines of a card: what is wrong and what to do, whose jobs, the evidence, how it stands. Pure.

Called by `runbooks.explain`. On a phone only the first line is read for certain, so it carries node,
cause and what to do; nothing that it says is said again below it. Times are HH:MM, with the zone once
a line; a time of another day keeps its day.
"""

from runbooks.card_facts import diagnosis, facts_of, facts_told, jobs_told, repaired, survivors
from runbooks.machine import RunState
from runbooks.rails import PlanGate
from runbooks.run import Run, StepState
from runbooks.told import Told
from runbooks.wording import WIDTH, clocked, cut, effects, minute, news, packed, rows_of, where

MOST_LINES = 6
_NO_CAUSE = "no cause decides; "
_DECIDES = ": a person decides"
_NOTHING_DONE = "the bot has changed nothing"
_SUGGESTS = ". First: "
"""How the engine joins what a person is asked and what the table suggests."""


def lines(run: Run, told: Told) -> tuple[str, ...]:
    """At most six lines of at most 80 characters; the last one alone says how it stands."""
    today = told.now.date()
    first = clocked(_headline(run, told), today)
    stands = cut(clocked(_stands(run, told), today))
    jobs = [cut(clocked(line, today)) for line in jobs_told(run, told)]
    room = MOST_LINES - 2 - len(jobs)
    detail = clocked(_detail(run, told, whole=len(first) <= WIDTH), today)
    rest = rows_of(detail, room - 1) if detail else []
    said = " ".join((first, *jobs, *rest, stands))
    facts = news((clocked(fact, today) for fact in facts_told(told)), said)
    return (cut(first), *jobs, *packed(facts, room - len(rest)), *rest, stands)


def _headline(run: Run, told: Told) -> str:
    """Node, cause, and what is to be done or was done."""
    todo = _todo(run, told)
    return f"{where(run)}: {_cause(run, told)}{f' → {todo}' if todo else ''}"


def _cause(run: Run, told: Told) -> str:
    """The cause that decides, or what was asked for; and whether it is one node or many."""
    found = diagnosis(told.outputs)
    if not found:
        reason = run.parameters.get("reason") or run.reason
        return f"{run.title} ({reason})" if reason else run.title
    dropped = int(str(facts_of(told.outputs).get("dropped_recently") or 0))
    many = f", {dropped} nodes at once" if dropped > 1 else ""
    if not found.get("id"):
        return f"{str(found.get('why')).removesuffix(_DECIDES)}{many}"
    title = str(found.get("title"))
    # What was repaired is past; one verb is all the grammar that the titles need.
    return f"{found['id']} {title.replace(' is ', ' was ') if repaired(run) else title}{many}"


def _todo(run: Run, told: Told) -> str:
    """What the reader has to do, or what was done; empty while the bot itself is at it."""
    match run.state:
        case RunState.AWAITING_APPROVAL:
            verbs = dict.fromkeys(step.action.partition("@")[0] for step in told.plan.steps)
            what = f": {', '.join(verbs)}" if verbs else ""
            return f"{_yes_of(run)}{what}"
        case RunState.NEEDS_PERSON:
            return _asked(run)
        case RunState.PAUSED:
            return "paused: resume or abort it"
        case RunState.SUCCEEDED:
            return run.why
        case state if state.final:
            return f"{state}: {run.why}"
        case _:
            return ""


def _asked(run: Run) -> str:
    """What a person is asked, shortly; the whole stands in the last lines."""
    said, _, suggested = run.why.partition(_SUGGESTS)
    if suggested:
        return suggested
    for key, step in run.steps.items():
        if step.state in {StepState.FAILED, StepState.UNKNOWN}:
            word = "failed" if step.state is StepState.FAILED else "has an unknown outcome"
            return f"{key} {word}: look, then click what is so"
    said = said.removeprefix(f"{where(run)}: ")
    return "you decide" if said.startswith(_NO_CAUSE) else f"you decide: {said}"


def _yes_of(run: Run) -> str:
    left = _approvals_left(run)
    if not left:
        return "say go"
    return f"{left} other {'person' if left == 1 else 'persons'} must approve"


def _stands(run: Run, told: Told) -> str:
    """The state, what was changed, and who asked."""
    did = effects(run, StepState.DONE)
    parts = [_state(run, told)]
    if run.state is RunState.SUCCEEDED:
        parts.append(survivors(told.outputs))
    elif did or run.state.final or run.state is RunState.NEEDS_PERSON:
        parts.append(f"changed {', '.join(did)}" if did else "changed nothing")
    parts.append(f"asked by {told.name(run.requested_by)}")
    return "; ".join(part for part in parts if part)


def _state(run: Run, told: Told) -> str:
    match run.state:
        case RunState.AWAITING_APPROVAL:
            until = minute(run.plan.expires_at) if run.plan else ""
            return f"Waits for {_approver(run)} until {until}"
        case RunState.NEEDS_PERSON:
            return f"NEEDS A PERSON ({told.page})" if told.page else "NEEDS A PERSON"
        case RunState.SUCCEEDED:
            return f"Finished {minute(run.ended_at)}"
        case RunState.FAILED:
            return f"FAILED {minute(run.ended_at)}"
        case RunState.WAITING:
            return "Waits"
        case RunState.RUNNING | RunState.UNDOING | RunState.REQUESTED:
            return _working(run)
        case state:
            return f"{state.value.capitalize()} {minute(run.ended_at)}".rstrip()


def _detail(run: Run, told: Told, *, whole: bool) -> str:
    """What the first line had no room for. `whole`: it was not cut."""
    match run.state:
        case RunState.NEEDS_PERSON:
            suggested = run.why.partition(_SUGGESTS)[2]
            first = f"First: {suggested}" if suggested and not whole else ""
            return ". ".join(part for part in (_question(run, told, whole=whole), first) if part)
        case RunState.AWAITING_APPROVAL | RunState.WAITING | RunState.PAUSED:
            return run.why
        case state:
            return run.why if state.final and not whole else ""


def _question(run: Run, told: Told, *, whole: bool) -> str:
    """What a person is asked, without what the first line says of it."""
    said = run.why.partition(_SUGGESTS)[0].removeprefix(f"{where(run)}: ")
    found = diagnosis(told.outputs)
    if said.startswith(_NO_CAUSE):
        return "" if whole else str(found.get("why")).removesuffix(_DECIDES)
    # Why this cause and no other stands in the thread.
    said = said.removeprefix(f"{found.get('id')} {found.get('title')}; ")
    said = said.replace(f" ({found.get('why')})", "", 1).removeprefix(_NOTHING_DONE)
    said = said.strip().replace(f" on {where(run)}: ", ": ", 1)
    return "" if whole and _asked(run) == f"you decide: {said}" else said


def _working(run: Run) -> str:
    now = effects(run, StepState.INTENDED)
    if now:
        return f"Doing: {', '.join(now)}"
    return "Taking back" if run.state is RunState.UNDOING else "Looking"


def _approver(run: Run) -> str:
    left = _approvals_left(run)
    return f"{left} other {'person' if left == 1 else 'persons'}" if left else "a go"


def _approvals_left(run: Run) -> int:
    """How many others must still say yes; 0 where a go is enough."""
    plan = run.plan
    if plan is None or plan.gate == PlanGate.CONFIRM:
        return 0
    given = len({entry.actor for entry in run.approvals if entry.hash == plan.hash})
    return plan.approvals_needed - given
