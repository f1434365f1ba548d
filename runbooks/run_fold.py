"""How a run follows from its records: `requested` begins one, `fold` takes each further record in. Pure.

The only way a run changes; the projection and `audit rebuild` call it, and the engine reads what it
made. A record kind that is not listed at the end leaves a run as it is.
"""

from dataclasses import replace
from datetime import datetime
from typing import Any

from audit_log.records import EventKind, Record
from config.clock import from_microseconds
from config.ids import PlanHash, RunId
from runbooks.machine import Move, RunState, next_state
from runbooks.packing import unpacked
from runbooks.run import Approval, PlanRef, Run, StepRecord, StepState


def requested(record: Record) -> Run:
    """The run that a `run.requested` record begins."""
    data = _data(record)
    run = record.event.run
    cluster = record.event.cluster
    if run is None or cluster is None:
        raise ValueError(f"record {record.seq}: run.requested without run or cluster")
    return Run(
        id=run,
        runbook=data["runbook"],
        version=data["version"],
        title=data["title"],
        definition=data["definition"],
        cluster=cluster,
        parameters=unpacked(data["parameters"]),
        requested_by=record.event.actor,
        roles=tuple(data["roles"]),
        door=data["door"],
        reason=data["reason"],
        requested_at=record.at,
        parent=RunId(data["parent"]) if data.get("parent") else None,
        parent_step=data.get("parent_step", ""),
        place=data.get("place", ""),
        due_at=record.at,
        revision=1,
        last_seq=record.seq,
    )


def fold(run: Run, record: Record) -> Run:
    """The run after this record. Raises IllegalTransition for a record that cannot follow."""
    change = _FOLDS.get(record.event.kind)
    changed = run if change is None else change(run, record)
    return changed if changed.last_seq == record.seq else _counted(changed, record)


def _counted(run: Run, record: Record, **changes: Any) -> Run:
    """The run with one record more. News of a step brings its changes along: copies are what
    folding costs, and nearly every record is news of a step.
    """
    return replace(run, revision=run.revision + 1, last_seq=record.seq, **changes)


def _data(record: Record) -> dict[str, Any]:
    """The record's data as read from JSON; its shape was fixed when it was written."""
    return dict(record.event.data)


def _state(run: Run, record: Record) -> Run:
    data = _data(record)
    move = Move(data["move"])
    why = data.get("why", "")
    if move.asks_to_stop and run.state is RunState.NEEDS_PERSON:
        return run  # it stands still already; the record says who has it in hand
    if move.asks_to_stop:
        return replace(run, stop_wanted=move.stop, stop_reason=why, due_at=record.at)
    kept = move.keeps_stop
    state = next_state(run.state, move)
    due = from_microseconds(data["due_us"]) if data.get("due_us") is not None else None
    if due is None and state.acts and not state.final:
        due = record.at
    return replace(
        run,
        state=state,
        why=why,
        due_at=None if state.final else due,
        ended_at=record.at if state.final else None,
        locks=() if state.final else run.locks,
        stop_wanted=run.stop_wanted if kept else "",
        stop_reason=run.stop_reason if kept else "",
        turned_back=run.turned_back or state is RunState.UNDOING,
        steps=_afresh(run, record) if move in {Move.RESUME, Move.RESOLVE} else run.steps,
    )


def _afresh(run: Run, record: Record) -> dict[str, StepRecord]:
    """A wait that a person interrupted has its whole time again."""
    return {
        key: replace(step, started_at=record.at, blind_since=None)
        if step.state is StepState.WAITING
        else replace(step, blind_since=None)
        for key, step in run.steps.items()
    }


def _plan_made(run: Run, record: Record) -> Run:
    data = _data(record)
    plan = PlanRef(
        hash=PlanHash(data["hash"]),
        artefact=data["artefact"],
        ask=data["ask"],
        gate=data["gate"],
        approvals_needed=data["approvals_needed"],
        expires_at=from_microseconds(data["expires_us"]),
        at=data.get("at", ""),
        summary=data.get("summary", ""),
    )
    return replace(run, plan=plan, asks=data["ask"], approvals=(), due_at=record.at)


def _plan_voided(run: Run, record: Record) -> Run:
    return replace(
        run,
        plan=None,
        approvals=(),
        voids=run.voids + 1,
        own_plan=run.parent is not None,
        why=_data(record)["why"],
        due_at=record.at,
    )


def _approval(run: Run, record: Record) -> Run:
    data = _data(record)
    approval = Approval(
        actor=record.event.actor,
        hash=PlanHash(data["hash"]),
        at=record.at,
        door=data["door"],
        break_glass=record.event.kind is EventKind.BREAK_GLASS,
        reason=data.get("reason", ""),
    )
    return replace(run, approvals=(*run.approvals, approval), due_at=record.at)


def _locks(run: Run, record: Record) -> Run:
    return replace(run, locks=tuple(sorted(unpacked(_data(record))["locks"])))


def _step(run: Run, record: Record, step: StepRecord, **changes: Any) -> Run:
    """Any news of a step also wakes a waiting run: no record of its own is needed for that."""
    state = next_state(run.state, Move.WAKE) if run.state is RunState.WAITING else run.state
    steps = {**run.steps, _data(record)["key"]: step}
    due = record.at if state.acts else run.due_at
    return _counted(run, record, state=state, steps=steps, due_at=due, **changes)


def _until(run: Run, due: datetime | None) -> Run:
    """The run, looked at again at `due`; an undoing run waits in its own state."""
    state = next_state(run.state, Move.WAIT) if run.state is RunState.RUNNING else run.state
    return replace(run, state=state, due_at=due)


def _begun(run: Run, record: Record) -> StepRecord:
    """The step's record so far, or a fresh one."""
    data = _data(record)
    before = run.steps.get(data["key"])
    if before is not None:
        return before
    step = record.event.step
    if step is None:
        raise ValueError(f"record {record.seq}: {record.event.kind} without step")
    return StepRecord(
        step=step, node=record.event.node, state=StepState.WAITING, started_at=record.at
    )


def _step_read(run: Run, record: Record) -> Run:
    data = _data(record)
    state = StepState.FAILED if data.get("error") else StepState.DONE
    step = replace(
        _begun(run, record),
        state=state,
        action=data.get("action", ""),
        output=data.get("output", {}),
        why=data.get("error", data.get("why", "")),
        kind=data.get("kind", ""),
        ended_at=record.at,
    )
    return _step(run, record, step)


def _step_skipped(run: Run, record: Record) -> Run:
    step = replace(
        _begun(run, record),
        state=StepState.SKIPPED,
        why=_data(record)["why"],
        ended_at=record.at,
    )
    return _step(run, record, step)


def _step_waits(run: Run, record: Record) -> Run:
    data = _data(record)
    begun = _begun(run, record)
    blind = (begun.blind_since or record.at) if data.get("blind") else None
    # What is to be taken back stays done until it is.
    state = StepState.DONE if data.get("undoing") else StepState.WAITING
    step = replace(begun, state=state, why=data["why"], blind_since=blind)
    return replace(
        _until(_step(run, record, step), from_microseconds(data["until_us"])), why=data["why"]
    )


def _step_intended(run: Run, record: Record) -> Run:
    data = _data(record)
    before = _begun(run, record)
    step = replace(
        before,
        state=StepState.INTENDED,
        action=data["action"],
        attempt=data["attempt"],
        arguments=data["arguments"],
        looked=data["looked"],
        why="",
        kind="",
        intended_at=record.at,
        blind_since=None,
        expires_at=from_microseconds(data["expires_us"]),
        ended_at=None,
        undoing=data.get("undoing", False),
        done_by=(before.done_by or before.action) if data.get("undoing") else "",
    )
    return _step(run, record, step, voids=0)


_OUTCOMES = {
    "done": StepState.DONE,
    "undone": StepState.UNDONE,
    "failed": StepState.FAILED,
    "again": StepState.WAITING,
    "unknown": StepState.UNKNOWN,
}


def _step_finished(run: Run, record: Record) -> Run:
    data = _data(record)
    before = run.steps[data["key"]]
    state = _OUTCOMES[data["outcome"]]
    if before.undoing and state in {StepState.WAITING, StepState.FAILED}:
        # What was to be taken back is still there, and is still to be taken back.
        before, state = replace(before, action=before.done_by), StepState.DONE
    step = replace(
        before,
        state=state,
        output=data.get("output", before.output),
        why=data.get("why", ""),
        kind=data.get("kind", ""),
        ended_at=record.at,
        expires_at=None,
        undoing=before.undoing and state is StepState.UNKNOWN,
    )
    run = _step(run, record, step)
    until = data.get("until_us")
    return run if until is None else _until(run, from_microseconds(until))


def _child(run: Run, record: Record) -> Run:
    step = replace(
        _begun(run, record),
        state=StepState.WAITING,
        child=RunId(_data(record)["child"]),
        why="its own run",
    )
    return _until(_step(run, record, step), None)


def _taken_over(run: Run, record: Record) -> Run:
    """A step of a called run stands behind the call from now on, as if it were the caller's own."""
    data = _data(record)
    step = record.event.step
    if step is None:
        raise ValueError(f"record {record.seq}: step.taken_over without step")
    taken = StepRecord(
        step=step,
        node=record.event.node,
        state=StepState(data["state"]),
        action=data["action"],
        attempt=data["attempt"],
        arguments=data["arguments"],
        why=data["why"],
        started_at=record.at,
        ended_at=record.at,
        child=RunId(data["called"]) if data.get("called") else None,
        undoing=data["undoing"],
        done_by=data["done_by"],
    )
    call = data["key"].rpartition("/")[0]
    entries = list(run.steps.items())
    behind = max(
        at for at, (key, _) in enumerate(entries) if key == call or key.startswith(f"{call}/")
    )
    entries.insert(behind + 1, (data["key"], taken))
    return replace(run, steps=dict(entries), due_at=record.at)


def _jump(run: Run, record: Record) -> Run:
    """A clock jump moves what the run waits for along with it: nothing expires by the jump alone."""
    shift = from_microseconds(_data(record)["by_us"]) - from_microseconds(0)
    plan = run.plan and replace(run.plan, expires_at=run.plan.expires_at + shift)
    steps = {
        key: replace(
            step,
            started_at=step.started_at and step.started_at + shift,
            intended_at=step.intended_at and step.intended_at + shift,
            blind_since=step.blind_since and step.blind_since + shift,
            expires_at=step.expires_at and step.expires_at + shift,
        )
        if step.ended_at is None or step.blind_since is not None
        else step
        for key, step in run.steps.items()
    }
    return replace(run, plan=plan, steps=steps, due_at=run.due_at and run.due_at + shift)


_FOLDS = {
    EventKind.RUN_STATE: _state,
    EventKind.PLAN_MADE: _plan_made,
    EventKind.PLAN_VOIDED: _plan_voided,
    EventKind.APPROVAL_GIVEN: _approval,
    EventKind.BREAK_GLASS: _approval,
    EventKind.LOCKS_TAKEN: _locks,
    EventKind.STEP_READ: _step_read,
    EventKind.STEP_SKIPPED: _step_skipped,
    EventKind.STEP_WAITS: _step_waits,
    EventKind.STEP_INTENDED: _step_intended,
    EventKind.STEP_FINISHED: _step_finished,
    EventKind.STEP_RESOLVED: _step_finished,
    EventKind.CHILD_STARTED: _child,
    EventKind.STEP_TAKEN_OVER: _taken_over,
    EventKind.CLOCK_JUMPED: _jump,
}
