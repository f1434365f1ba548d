"""The records that the engine writes about a run, as events. Pure."""

import json

from audit_log.records import Event, EventKind
from config.actors import ENGINE
from config.ids import InstanceId, RunId
from config.json_values import JsonMap
from config.node_names import fold
from runbooks.next_step import Place
from runbooks.run import Run, run_nodes


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


def page_over(run: Run, why: str, instance: InstanceId) -> Event:
    """The intent to say that this run needs nobody any more."""
    details = json.dumps({"run": run.id, "cluster": run.cluster, "why": why[:1000]})
    data: JsonMap = {
        "key": page_key(run.id, instance),
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
