"""The records that the engine writes about a run, as events. Pure."""

import json

from audit_log.records import Event, EventKind
from config.actors import ENGINE
from config.ids import InstanceId, RunId
from config.json_values import JsonMap
from config.node_names import fold
from runbooks.next_step import Place
from runbooks.run import Run, StepRecord, run_nodes

STUCK = "stuck"
"""Names the page about a run whose look or effect does not come back."""


def run_event(kind: EventKind, run: Run, data: JsonMap, place: Place | None = None) -> Event:
    """A record of the engine about this run, and about one step of it where `place` says so."""
    return Event(
        kind=kind,
        actor=ENGINE.id,
        run=run.id,
        step=place.step.id if place else None,
        cluster=run.cluster,
        node=place.node if place else None,
        data=data,
    )


def page_key(run: RunId, instance: InstanceId, limit: str = "") -> str:
    """The same trouble has the same key, so that the receiver merges repeats and can resolve it."""
    return f"nodewarden/{instance}/{run}" + (f"/{limit}" if limit else "")


def page_over(run: Run, why: str, instance: InstanceId, limit: str = "") -> Event:
    """The intent to say that this run needs nobody any more."""
    details = json.dumps({"run": run.id, "cluster": run.cluster, "why": why[:1000]})
    data: JsonMap = {
        "key": page_key(run.id, instance, limit),
        "summary": f"{run.id} {run.runbook}: {why}"[:200],
        "details": details,
        "resolved": True,
    }
    return run_event(EventKind.PAGE_INTENDED, run, data)


def page_event(run: Run, why: str, instance: InstanceId, limit: str = "") -> Event:
    """The intent to page about this run; the worker sends it and records what became of it."""
    key = page_key(run.id, instance, limit)
    where = fold(run_nodes(run))
    summary = f"{run.id} {run.runbook} {where}: {why}"[:200]
    details = json.dumps({"run": run.id, "cluster": run.cluster, "why": why[:1000]})
    return run_event(
        EventKind.PAGE_INTENDED, run, {"key": key, "summary": summary, "details": details}
    )


def taken_over(run: Run, called: RunId, key: str, step: StepRecord) -> Event:
    """A step of a called run that its caller takes back from now on."""
    data: JsonMap = {
        "key": key,
        "of": called,
        "called": step.child,
        "state": step.state.value,
        "action": step.action,
        "attempt": step.attempt,
        "arguments": step.arguments,
        "why": step.why[:500],
        "undoing": step.undoing,
        "done_by": step.done_by,
    }
    return Event(
        kind=EventKind.STEP_TAKEN_OVER,
        actor=ENGINE.id,
        run=run.id,
        step=step.step,
        cluster=run.cluster,
        node=step.node,
        data=data,
    )


def call_undone(run: Run, key: str) -> Event:
    """The end of taking back a called run: nothing of it is left that could be taken back."""
    call = run.steps[key]
    data: JsonMap = {
        "key": key,
        "attempt": call.attempt,
        "outcome": "undone",
        "why": f"nothing of {call.child} is left",
    }
    return Event(
        kind=EventKind.STEP_FINISHED,
        actor=ENGINE.id,
        run=run.id,
        step=call.step,
        cluster=run.cluster,
        node=call.node,
        data=data,
    )
