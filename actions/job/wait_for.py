"""`job.await`: waits until a requeued job runs again without the sick node; each call looks once.

Called by the engine, which asks again at the time that a Wait names and ends the step at its
`timeout:`. Changes nothing. Restarts alone proves nothing: it counts when the requeue is accepted,
while the old run still ends (measured).
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from actions.cluster import Job
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
    Standing,
    Unknown,
    Unreadable,
    ValueType,
    Wait,
)
from actions.job import readings
from actions.job.settings import JOB, NODE, Hands
from config.node_names import fold
from config.permissions import Permission

_POLL = timedelta(seconds=5)
_SPEC = ActionSpec(
    name="job.await",
    version=1,
    summary="Wait until a requeued job runs again without a node",
    permission=Permission.NODE_READ,
    parameters={
        "job": JOB,
        "node": NODE,
        "restarts": Field(
            type=ValueType.NUMBER, help="how often it was started again before the requeue"
        ),
    },
    output={
        "state": Field(type=ValueType.TEXT, help="state when it was so"),
        "nodes": Field(type=ValueType.NODES, help="where it runs now"),
        "restarts": Field(type=ValueType.NUMBER, help="how often it was started again"),
        "started": Field(type=ValueType.TEXT, help="when the new run began"),
    },
    looks_only=True,
    time_limit=timedelta(hours=1),
)


@dataclass(frozen=True, slots=True)
class WaitForJob:
    """The verb."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _SPEC

    def look(self, call: Call) -> Observation:
        """What `do` would see. Raises Unreadable, Refusal."""
        job = readings.fresh_job(call, self.hands)
        return Observation(
            standing=Standing.NOT_SO,
            why=f"job {job.id} is {readings.state_text(job)}",
            state=readings.state_text(job),
        )

    def do(self, call: Call) -> Outcome:
        """Done when it runs, Wait while it may still come to that."""
        try:
            job = readings.fresh_job(call, self.hands)
            sick = readings.node_named(call)
        except Unreadable as error:
            return Unknown(why=str(error))
        except Refusal as error:
            return Failed(error=str(error), kind=FailureKind.REFUSED)
        planned = call.arguments.get("restarts")
        wanted = planned + 1 if isinstance(planned, int) else None
        seen = f"job {job.id} is {readings.state_text(job)}"
        wrong = _wrong(job, wanted)
        if wrong:
            return Failed(error=f"{seen}: {wrong}", kind=FailureKind.PERMANENT)
        if job.state != "RUNNING" or job.restarts != wanted:
            return Wait(until=call.now + _POLL, why=_why_not_yet(job))
        if sick in job.nodes:
            again = f"{seen}: it was started on {sick} again"
            return Failed(error=again, kind=FailureKind.PERMANENT)
        return Done(
            output={
                "state": job.state,
                "nodes": list(job.nodes),
                "restarts": job.restarts,
                "started": _minute(job.started_at),
            }
        )


def _wrong(job: Job, wanted: int | None) -> str:
    """Why waiting on makes no sense; empty while it does."""
    if job.state in readings.ENDED:
        return "it has ended and does not come back"
    if wanted is not None and job.restarts > wanted:
        return f"somebody requeued it again, planned was Restarts {wanted}"
    return ""


def _why_not_yet(job: Job) -> str:
    """What it waits for. The same sentence as long as that is so: a wait is recorded once."""
    if "COMPLETING" in {job.state, *job.state_flags}:
        held = fold(job.nodes) or "a node that Slurm does not name"
        return f"job {job.id}: its old run has not ended yet, held by {held}"
    if job.state == "PENDING":
        begins = ""
        if job.state_reason == "BeginTime" and job.eligible_at is not None:
            begins = f", Slurm starts it from {job.eligible_at.astimezone(UTC):%H:%M:%S} UTC on"
        return f"job {job.id} is PENDING ({job.state_reason[:80] or 'no reason given'}{begins})"
    return f"job {job.id} is {job.state} (Restarts {job.restarts})"


def _minute(moment: datetime | None) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if moment else ""
