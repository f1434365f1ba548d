"""`job.point` and `job.settle`: a requeued job uses our reservation, and is as before once it runs.

Called by the engine. Each is one update of one job. Slurm lets a reservation go only when no job points
to it, so whoever points must settle. Neither touches a reservation that somebody else has set meanwhile,
nor ever ExcNodeList: the drain and the reservation keep the job off the sick node without it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from actions.cluster import Job, JobChange
from actions.contract import (
    ActionSpec,
    Call,
    Done,
    Failed,
    FailureKind,
    Field,
    Observation,
    Outcome,
    Refusal,
    Rejected,
    Standing,
    Unknown,
    UnknownJob,
    Unreadable,
    ValueType,
    WriteUnknown,
)
from actions.job import readings
from actions.job.settings import JOB, NODE, Hands
from config.json_values import Json
from config.permissions import Permission

_PARAMETERS = {
    "job": JOB,
    "node": NODE,
    "reservation": Field(type=ValueType.TEXT, help="reservation of this run"),
    "reservation_before": Field(
        type=ValueType.TEXT, help="the one that the job used before, or empty"
    ),
    "priority": Field(type=ValueType.NUMBER, help="its priority before"),
}
_OUTPUT = {
    "reservation": Field(type=ValueType.TEXT, help="reservation of the job after the write"),
    "priority": Field(type=ValueType.NUMBER, help="its priority after it"),
    "excluded": Field(type=ValueType.TEXT, help="its ExcNodeList, which is never changed"),
}
_POINT = ActionSpec(
    name="job.point",
    version=1,
    summary="Let a requeued job start on the nodes that this run holds for it",
    permission=Permission.JOB_REQUEUE,
    parameters=_PARAMETERS,
    output=_OUTPUT,
    undo="job.settle",
)
_SETTLE = ActionSpec(
    name="job.settle",
    version=1,
    summary="Give a job back the reservation and the priority that it had",
    permission=Permission.JOB_REQUEUE,
    parameters=_PARAMETERS,
    output=_OUTPUT,
)


@dataclass(frozen=True, slots=True)
class Point:
    """`job.point`."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _POINT

    def look(self, call: Call) -> Observation:
        """Which reservation it uses. Raises Unreadable, Refusal."""
        readings.settled_snapshot(call, self.hands)
        return _seen(readings.fresh_job(call, self.hands), call, self._standing)

    def do(self, call: Call) -> Outcome:
        """Look once more, point, read back."""
        return _changed(call, self.hands, self._standing, _to_ours)

    def _standing(self, call: Call, job: Job) -> tuple[Standing, str]:
        wanted, seen = _text(call, "reservation"), _shown(job)
        if job.state in readings.ENDED:
            return Standing.BLOCKED, f"{seen}: it has ended"
        if job.reservation == wanted:
            return Standing.OURS, f"{seen}: it uses reservation {wanted} already"
        if job.state == "RUNNING" and call.node not in job.nodes:
            return Standing.FOREIGN, f"{seen}: it runs without {call.node} already"
        if job.reservation != _text(call, "reservation_before"):
            named = job.reservation or "none"
            return Standing.BLOCKED, f"{seen}: somebody gave it another reservation ({named})"
        return Standing.NOT_SO, seen


@dataclass(frozen=True, slots=True)
class Settle:
    """`job.settle`."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _SETTLE

    def look(self, call: Call) -> Observation:
        """What is not as before. Raises Unreadable, Refusal."""
        readings.settled_snapshot(call, self.hands)
        return _seen(readings.fresh_job(call, self.hands), call, self._standing)

    def do(self, call: Call) -> Outcome:
        """Look once more, put back what differs, read back."""
        return _changed(call, self.hands, self._standing, _as_before)

    def _standing(self, call: Call, job: Job) -> tuple[Standing, str]:
        seen = _shown(job)
        if job.state in readings.ENDED:
            return Standing.FOREIGN, f"{seen}: it has ended, nothing is to be put back"
        if call.node in job.nodes and job.state == "RUNNING":
            return Standing.NOT_SO, f"{seen}: its reservation and priority are put back at the end"
        if _as_before(call, job) == JobChange():
            return Standing.OURS, f"{seen}: all is as before"
        return Standing.NOT_SO, seen


def _to_ours(call: Call, _job: Job) -> JobChange:
    return JobChange(reservation=_text(call, "reservation"))


def _as_before(call: Call, job: Job) -> JobChange:
    """What differs from before. A reservation that somebody else set meanwhile stays theirs."""
    ours, before = _text(call, "reservation"), _text(call, "reservation_before")
    priority = call.arguments.get("priority")
    wanted = priority if isinstance(priority, int) and priority > 0 else job.priority
    return JobChange(
        reservation=before if job.reservation == ours != before else None,
        priority=None if wanted == job.priority else wanted,
    )


_MOVES_ON = frozenset({"PENDING", "COMPLETING", "REQUEUED"})
"""A requeued job goes from one to the next by itself: that is no change that anybody made."""

Judge = Callable[[Call, Job], tuple[Standing, str]]


def _seen(job: Job, call: Call, judge: Judge) -> Observation:
    standing, why = judge(call, job)
    return Observation(
        standing=standing,
        why=why,
        owner=f"user {job.user}",
        state=_shown(replace(job, state="WAITING") if job.state in _MOVES_ON else job),
    )


def _changed(
    call: Call, hands: Hands, judge: Judge, change: Callable[[Call, Job], JobChange]
) -> Outcome:
    """Look once more, write once, read back."""
    try:
        before = readings.fresh_job(call, hands)
    except Unreadable as error:
        return Failed(error=f"nothing was written: {error}", kind=FailureKind.RETRYABLE)
    except Refusal as error:
        return Failed(error=f"nothing was written: {error}", kind=FailureKind.REFUSED)
    standing, why = judge(call, before)
    if standing is Standing.OURS:
        return Done(output=_output(before))
    if standing is not Standing.NOT_SO:
        return Failed(error=f"nothing was written: {why}", kind=FailureKind.REFUSED)
    if before.state == "RUNNING" and call.node in before.nodes:
        return Failed(
            error=f"nothing was written: {why}; it still runs on {call.node}",
            kind=FailureKind.REFUSED,
        )
    try:
        readings.job_hands(call, hands).change_job(before.id, change(call, before))
        after = readings.fresh_job(call, hands)
    except WriteUnknown as error:
        return Unknown(why=str(error))
    except Unreadable as error:
        return Unknown(why=f"perhaps written, not read back: {error}")
    except (Rejected, UnknownJob) as error:
        # While its old run still ends Slurm may not take a change yet; the next attempt looks again.
        return Failed(error=f"Slurm said no: {error}", kind=FailureKind.RETRYABLE)
    except Refusal as error:
        return Failed(error=str(error), kind=FailureKind.PERMANENT)
    left = judge(call, after)
    if left[0] is Standing.OURS or after.state in readings.ENDED:
        return Done(output=_output(after))
    return Failed(error=f"Slurm said yes, but {left[1]} when read back", kind=FailureKind.RETRYABLE)


def _output(job: Job) -> dict[str, Json]:
    return {
        "reservation": job.reservation,
        "priority": job.priority,
        "excluded": job.excluded_nodes,
    }


def _shown(job: Job) -> str:
    """All that a change of ours changes: unchanged means that it did not happen."""
    used = job.reservation or "no reservation"
    excluded = f", without {job.excluded_nodes}" if job.excluded_nodes else ""
    return (
        f"job {job.id} is {job.state} Restarts {job.restarts}, {used}, "
        f"priority {job.priority}{excluded}"
    )


def _text(call: Call, name: str) -> str:
    value = call.arguments.get(name)
    return value if isinstance(value, str) else ""
