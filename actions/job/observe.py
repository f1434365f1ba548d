"""`job.observe`: one job, who would lose what if its run ended now, and what would follow.

Called by the engine; changes nothing.
"""

from dataclasses import dataclass

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
)
from actions.job import readings
from actions.job.settings import JOB, Hands
from actions.job_losses import loss, restart_of
from config.json_values import Json
from config.permissions import Permission

_TEXT, _NUMBER, _TRUTH = ValueType.TEXT, ValueType.NUMBER, ValueType.TRUTH
_SPEC = ActionSpec(
    name="job.observe",
    version=1,
    summary="Look at one job: whose it is, where it runs, what becomes of its work",
    permission=Permission.NODE_READ,
    parameters={"job": JOB},
    output={
        "id": Field(type=_TEXT, help="as people name it"),
        "user": Field(type=_TEXT, help="its owner"),
        "account": Field(type=_TEXT, help="account"),
        "name": Field(type=_TEXT, help="as the owner called it"),
        "state": Field(type=_TEXT, help="RUNNING, PENDING, …"),
        "state_reason": Field(type=_TEXT, help="why it waits"),
        "partition": Field(type=_TEXT, help="partition"),
        "qos": Field(type=_TEXT, help="QOS"),
        "nodes": Field(type=ValueType.NODES, help="where it runs"),
        "node_count": Field(type=_NUMBER, help="how many nodes it wants"),
        "gpus": Field(type=_NUMBER, help="GPUs in all"),
        "restarts": Field(type=_NUMBER, help="how often it was started again"),
        "batch": Field(type=_TRUTH, help="whether it has a script that can be started again"),
        "requeue": Field(type=_TRUTH, help="whether Slurm may requeue it; its default, no promise"),
        "restartable": Field(type=_TRUTH, help="whether owner or site say that it resumes"),
        "restartable_by": Field(type=_TEXT, help="who says so"),
        "checkpoint": Field(type=_TEXT, help="folder of its checkpoints, where that is known"),
        "parts": Field(type=_TEXT, help="array or het job that it belongs to, or empty"),
        "becomes": Field(type=_TEXT, help="what becomes of its work when its run ends now"),
    },
    looks_only=True,
)


@dataclass(frozen=True, slots=True)
class Observe:
    """The verb."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _SPEC

    def look(self, call: Call) -> Observation:
        """What `do` would read. Raises Unreadable, Refusal."""
        job = readings.fresh_job(call, self.hands)
        return Observation(
            standing=Standing.NOT_SO,
            why=f"job {job.id} is {readings.state_text(job)}",
            state=readings.state_text(job),
        )

    def do(self, call: Call) -> Outcome:
        """Read it."""
        try:
            job = readings.fresh_job(call, self.hands)
        except Unreadable as error:
            return Unknown(why=str(error))
        except Refusal as error:
            return Failed(error=str(error), kind=FailureKind.REFUSED)
        return Done(output=self._facts(job))

    def _facts(self, job: Job) -> dict[str, Json]:
        restart = restart_of(job, self.hands.settings.restartable)
        return {
            "id": job.id,
            "user": job.user,
            "account": job.account,
            "name": job.name[:200],
            "state": job.state,
            "state_reason": job.state_reason[:200],
            "partition": job.partition,
            "qos": job.qos,
            "nodes": list(job.nodes),
            "node_count": job.node_count,
            "gpus": job.gpus,
            "restarts": job.restarts,
            "batch": job.batch,
            "requeue": job.requeue,
            "restartable": restart.yes,
            "restartable_by": restart.by,
            "checkpoint": restart.checkpoint,
            "parts": _parts(job),
            "becomes": loss(job, restart).why,
        }


def _parts(job: Job) -> str:
    if job.het_job is not None:
        return f"part of het job {job.het_job}"
    if job.array_job is not None:
        return f"task {job.array_task} of array {job.array_job}"
    return ""
