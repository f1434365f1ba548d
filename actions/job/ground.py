"""`job.ground`: where a job would run again without a sick node, and what speaks against it.

Called by the engine before anything is changed. It only looks: an empty list of blockers says that the
ground can be held while the job is started again (hands 3), anything else goes to a person with the
names of those who would take the nodes.
"""

from dataclasses import dataclass, replace

from actions.cluster import Job, Node, Snapshot
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
from actions.job.ground_rules import Scene, blockers, starts_at, takers
from actions.job.resume import resume_of
from actions.job.settings import JOB, NODE, Hands
from actions.job_losses import afterwards, loss, restart_of
from actions.ownership import foreign_reservations, reservation_name
from actions.spares import Choice, Held, SpareHow, choose
from config.json_values import Json
from config.permissions import Permission

LABEL = "ground"
"""In the name of the reservation that holds it."""
_MOST_REFUSED = 3
_TEXT, _NUMBER, _TRUTH = ValueType.TEXT, ValueType.NUMBER, ValueType.TRUTH
_FACTS, _NODES = ValueType.FACTS, ValueType.NODES
_SPEC = ActionSpec(
    name="job.ground",
    version=1,
    summary="See whether a job can be started again without a node before others take its nodes",
    permission=Permission.NODE_READ,
    parameters={"job": JOB, "node": NODE},
    output={
        "survivors": Field(type=_NODES, help="nodes of the job without that one"),
        "spare": Field(type=_TEXT, help="node that takes its place, or empty"),
        "spare_why": Field(type=_TEXT, help="why that one, or why none"),
        "nodes": Field(type=_NODES, help="survivors and spare: what is to be held"),
        "reservation": Field(type=_TEXT, help="name of the reservation that is to hold them"),
        "user": Field(type=_TEXT, help="owner of the job"),
        "restarts": Field(type=_NUMBER, help="how often it was started again so far"),
        "priority": Field(type=_NUMBER, help="its priority now"),
        "excluded": Field(type=_TEXT, help="its ExcNodeList now"),
        "reservation_before": Field(type=_TEXT, help="the reservation that it uses now, or empty"),
        "draining": Field(type=_TRUTH, help="whether the node takes no new work already"),
        "becomes": Field(type=_TEXT, help="what becomes of the work of the present run"),
        "resumes": Field(type=_TEXT, help="its newest complete checkpoint, or why none is known"),
        "checkpoint_step": Field(
            type=_NUMBER, help="step of that checkpoint, where it is known", required=False
        ),
        "files_read": Field(type=_TEXT, help="whose files were read for that, where; or empty"),
        "after": Field(type=_FACTS, help="what else follows, sentences"),
        "blockers": Field(type=_FACTS, help="why the ground cannot be held, sentences; or none"),
        "takers": Field(type=_FACTS, help="whose jobs would take the nodes"),
        "starts": Field(type=_TEXT, help="when the job could start without holding, if known"),
        "say": Field(type=_TEXT, help="all of that in one sentence, for a person"),
    },
    looks_only=True,
)


@dataclass(frozen=True, slots=True)
class SeeGround:
    """The verb."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _SPEC

    def look(self, call: Call) -> Observation:
        """What `do` would judge. Raises Unreadable, Refusal."""
        found = self._scene(call)
        against = blockers(found)
        return Observation(
            standing=Standing.BLOCKED if against else Standing.NOT_SO,
            why="; ".join(against) or f"the ground of job {found.job.id} can be held",
            state=readings.state_text(found.job),
        )

    def do(self, call: Call) -> Outcome:
        """Judge it."""
        try:
            found = self._scene(call)
        except Unreadable as error:
            return Unknown(why=str(error))
        except Refusal as error:
            return Failed(error=str(error), kind=FailureKind.REFUSED)
        return Done(output=self._output(call, found))

    def _scene(self, call: Call) -> Scene:
        hands = self.hands
        snapshot = readings.settled_snapshot(call, hands)
        job, sick = readings.fresh_job(call, hands), readings.fresh_node(call, hands)
        reservations = readings.job_hands(call, hands).fresh_reservations()
        spare = self._spare(call, snapshot, sick, job)
        ground = [node for node in (*job.nodes, spare.node) if node and node != sick.name]
        untouched = [hands.settings.hands_off(call.cluster, node) for node in ground]
        return Scene(
            cluster=call.cluster,
            snapshot=snapshot,
            job=job,
            sick=sick,
            spare=spare.node,
            spare_why="; ".join((spare.why, *spare.refused[:_MOST_REFUSED])),
            blind=readings.blindness(call, hands, snapshot),
            may_write=readings.may_still_write(call, hands, sick),
            foreign=foreign_reservations(reservations, call),
            hands_off=tuple(
                f"{node} is not to be touched: {why}"
                for node, why in zip(ground, untouched, strict=True)
                if why
            ),
            now=call.now,
        )

    def _spare(self, call: Call, snapshot: Snapshot, sick: Node, job: Job) -> Choice:
        """A node that can be used at once; one that must be freed first is for a person."""
        rules, off = self.hands.settings.spares, self.hands.settings.hands_off
        touchable = {
            name: node for name, node in snapshot.nodes.items() if not off(call.cluster, name)
        }
        found = choose(replace(snapshot, nodes=touchable), sick, job, rules, Held())
        if found.how in {SpareHow.NONE_NEEDED, SpareHow.NONE}:
            return found
        return replace(found, node=None, why=f"{found.why}: it must be brought in first")

    def _output(self, call: Call, found: Scene) -> dict[str, Json]:
        job, against = found.job, blockers(found)
        free = starts_at(found)
        restart = restart_of(job, self.hands.settings.restartable)
        becomes = loss(job, restart).why
        survivor = next(iter(found.survivors), None)
        resumes = resume_of(job, restart, survivor, self.hands.readings)
        return {
            "survivors": list(found.survivors),
            "spare": found.spare or "",
            "spare_why": found.spare_why[:300],
            "nodes": list(found.ground),
            "reservation": reservation_name(call, LABEL),
            "user": job.user,
            "restarts": job.restarts,
            "priority": job.priority,
            "excluded": job.excluded_nodes,
            "reservation_before": job.reservation,
            "draining": found.sick.draining,
            "becomes": becomes,
            "resumes": resumes.why,
            "checkpoint_step": resumes.step,
            "files_read": resumes.read,
            "after": list(afterwards(found.snapshot, job, found.sick.name)),
            "blockers": list(against),
            "takers": list(takers(found)),
            "starts": f"{free:%Y-%m-%dT%H:%MZ}" if free else "",
            "say": _say(found, against, becomes),
        }


def _say(found: Scene, against: tuple[str, ...], becomes: str) -> str:
    """For the card of a run that stops here: what, why, who would be first, and since when."""
    job = found.job
    if not against:
        return f"job {job.id} ({job.user}) {becomes}"
    first = takers(found)
    free = starts_at(found)
    parts = [
        f"job {job.id} ({job.user}) cannot be given its place back without {found.sick.name}, and "
        f"nothing was changed: {'; '.join(against)}",
        f"requeued all the same, it {becomes}",
    ]
    if first:
        parts.append(f"its nodes would go to {', '.join(first)}")
    if free:
        parts.append(f"by time limits it could start at {free:%Y-%m-%dT%H:%MZ} at the earliest")
    return ". ".join(parts)[:3500]
