"""`job.requeue`: Slurm starts a job again, away from a sick node, on ground that is held for it.

Called by the engine after the drain and the reservation. It ends the present run of exactly one job. It
must never requeue a job that was requeued since the plan, one whose old ranks may still write, or one
whose nodes others could take meanwhile (hands 3).
"""

from dataclasses import dataclass

from actions.cluster import Job, Reservation
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
from actions.job_losses import comes_back, loss, restart_of
from actions.ownership import foreign_reservations
from config.node_names import NodeName, fold
from config.permissions import Permission

_SPEC = ActionSpec(
    name="job.requeue",
    version=1,
    summary="Have Slurm start a job again without a node; its present run ends",
    permission=Permission.JOB_REQUEUE,
    parameters={
        "job": JOB,
        "node": NODE,
        "restarts": Field(
            type=ValueType.NUMBER, help="how often it was started again when this was planned"
        ),
        "reservation": Field(
            type=ValueType.TEXT, help="reservation of this run that holds its ground"
        ),
    },
    output={
        "restarts": Field(type=ValueType.NUMBER, help="Restarts after the requeue"),
        "state": Field(type=ValueType.TEXT, help="state of the job after it"),
        "becomes": Field(type=ValueType.TEXT, help="what becomes of the work of the old run"),
    },
    may_end_jobs=True,
)


@dataclass(frozen=True, slots=True)
class Requeue:
    """The verb."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _SPEC

    def look(self, call: Call) -> Observation:
        """Whether it still runs there as planned, and whose work ends. Raises Unreadable, Refusal."""
        snapshot = readings.settled_snapshot(call, self.hands)
        blind = readings.blindness(call, self.hands, snapshot)
        if blind:
            raise Refusal(f"no job is requeued on a job list that cannot be believed: {blind}")
        job = readings.fresh_job(call, self.hands)
        standing, why = self._standing(call, job)
        ends = loss(job, restart_of(job, self.hands.settings.restartable))
        if standing is Standing.NOT_SO:
            why += f"; it {ends.why}"
        return Observation(
            standing=standing,
            why=why,
            owner=f"user {job.user}",
            state=readings.state_text(job),
            jobs_end=(ends,) if standing is Standing.NOT_SO else (),
        )

    def do(self, call: Call) -> Outcome:
        """Look once more, requeue, read back."""
        try:
            job, against = self._last_look(call)
        except Unreadable as error:
            return Failed(error=f"nothing was requeued: {error}", kind=FailureKind.RETRYABLE)
        except Refusal as error:
            return Failed(error=f"nothing was requeued: {error}", kind=FailureKind.REFUSED)
        if against:
            return Failed(error=f"nothing was requeued: {against}", kind=FailureKind.REFUSED)
        return self._write(call, job)

    def _standing(self, call: Call, job: Job) -> tuple[Standing, str]:
        """How the job stands to the plan."""
        node, planned = readings.node_named(call), call.arguments.get("restarts")
        seen = f"job {job.id} is {readings.state_text(job)}"
        if isinstance(planned, int) and job.restarts > planned:
            ours = call.intended_at is not None and job.restarts == planned + 1
            standing = Standing.OURS if ours else Standing.FOREIGN
            return standing, f"{seen}: it was requeued already, planned from Restarts {planned}"
        wrong = _not_as_planned(job, planned)
        if wrong or job.elsewhere(call.cluster):
            return Standing.BLOCKED, f"{seen}: {wrong or 'it belongs to another cluster'}"
        if job.state != "RUNNING" or node not in job.nodes:
            return Standing.BLOCKED, f"{seen}: it does not run on {node} any more"
        return Standing.NOT_SO, seen

    def _last_look(self, call: Call) -> tuple[Job, str]:
        """The job right before the write, and why it may not be requeued. Raises Unreadable, Refusal."""
        hands = self.hands
        snapshot = readings.settled_snapshot(call, hands)
        blind = readings.blindness(call, hands, snapshot)
        sick = readings.fresh_node(call, hands)
        ground = self._ground(call)
        job = readings.fresh_job(call, hands)
        standing, why = self._standing(call, job)
        if blind:
            return job, f"the job list cannot be believed: {blind}"
        if standing is not Standing.NOT_SO:
            return job, why
        if not sick.draining and sick.base.value != "DOWN":
            return job, f"{sick.name} is {sick.state} and takes new work: drain it first"
        return job, readings.may_still_write(call, hands, sick) or _not_held(job, sick.name, ground)

    def _ground(self, call: Call) -> Reservation | None:
        """What is held by this run now: the controller may have forgotten it since (hands 1)."""
        reservations = readings.job_hands(call, self.hands).fresh_reservations()
        name = call.arguments.get("reservation")
        foreign = foreign_reservations(reservations, call)
        own = (found for found in reservations if found not in foreign)
        return next((found for found in own if found.name == name), None)

    def _write(self, call: Call, before: Job) -> Outcome:
        try:
            readings.job_hands(call, self.hands).requeue((before.id,))
        except WriteUnknown as error:
            return Unknown(why=str(error))
        except Unreadable as error:
            return Failed(error=f"nothing was requeued: {error}", kind=FailureKind.RETRYABLE)
        except (Rejected, Refusal, UnknownJob) as error:
            return Failed(error=f"Slurm said no: {error}", kind=FailureKind.PERMANENT)
        try:
            after = readings.fresh_job(call, self.hands)
        except (Unreadable, Refusal) as error:
            return Unknown(why=f"requeued, but not read back: {error}")
        if after.restarts <= before.restarts:
            # `Incomplete` says yes and does nothing to a job that has just ended (reference 1.12).
            return Failed(
                error=f"Slurm said yes, but job {after.id} is {readings.state_text(after)}",
                kind=FailureKind.RETRYABLE,
            )
        becomes = loss(before, restart_of(before, self.hands.settings.restartable)).why
        return Done(output={"restarts": after.restarts, "state": after.state, "becomes": becomes})


def _not_as_planned(job: Job, planned: object) -> str:
    """Why this job is none that can be started again; empty if it is."""
    if job.het_job is not None:
        return f"it is a part of het job {job.het_job}"
    if job.array_task and not job.array_task.isdigit():
        return "it stands for several tasks of an array"
    if not comes_back(job):
        return "Slurm would not start it again"
    if job.restarts != planned:
        return f"planned from Restarts {planned}"
    return ""


def _not_held(job: Job, sick: NodeName, ground: Reservation | None) -> str:
    """Why others could take the nodes of this job meanwhile; empty if they cannot."""
    if ground is None or not ground.active:
        return "no reservation of this run holds its nodes"
    if ground.users != (job.user,):
        return f"reservation {ground.name} is not for {job.user} alone"
    if sick in ground.nodes or len(ground.nodes) < max(job.node_count, len(job.nodes)):
        held = fold(ground.nodes) or "no node"
        return f"reservation {ground.name} holds {held}, which is not its ground"
    return ""
