"""`node.drain`: no new work on a node; what runs there goes on.

Called by the engine. It writes only on a node that nobody holds, in one update with our Reason, and
reads back. It must never drain a node that is drained already: that would replace its Reason.
"""

from dataclasses import dataclass

from actions.cluster import Job, Node, NodeBase
from actions.contract import (
    ActionSpec,
    Call,
    Done,
    Failed,
    FailureKind,
    Field,
    Observation,
    Outcome,
    Standing,
    ValueType,
)
from actions.node import readings
from actions.node.death import minute
from actions.node.fitting import first
from actions.node.readings import Jobs
from actions.node.restore import UNCHECKED, overwritten
from actions.node.settings import NODE, Hands
from actions.node.writing import Before, last_look, written
from actions.ownership import MARK_KIND, Holder, Holding, holding
from actions.reasons import ReasonKind, classify, mark_text
from config.json_values import Json, JsonMap
from config.permissions import Permission

_SPEC = ActionSpec(
    name="node.drain",
    version=1,
    summary="Take a node out of service; running jobs go on, no new ones start",
    permission=Permission.NODE_DRAIN,
    parameters={
        "node": NODE,
        "reason": Field(
            type=ValueType.TEXT,
            help="why; its first 16 characters stand in the Reason, else the cause of the run",
            required=False,
        ),
    },
    output={
        "state": Field(type=ValueType.TEXT, help="state after the write"),
        "reason": Field(type=ValueType.TEXT, help="Reason after the write"),
        "reason_before": Field(type=ValueType.TEXT, help="Reason that was replaced, if any"),
        "reason_before_by": Field(
            type=ValueType.TEXT, help="who wrote that, where the release tells it", required=False
        ),
        "why": Field(type=ValueType.TEXT, help="the whole reason that was given"),
        "jobs_stay": Field(
            type=ValueType.FACTS, help="jobs that go on, the first eight", required=False
        ),
        "job_count": Field(type=ValueType.NUMBER, help="how many go on", required=False),
        "jobs_blind": Field(
            type=ValueType.TEXT, help="why that is not known, or empty", required=False
        ),
        "unchecked": UNCHECKED,
    },
    takes_node_out=True,
    sets_mark=MARK_KIND,
    undo="node.return",
)
_MOST_JOBS = 8
_MOST_NAMED = 2
_NOT_TO_DRAIN = frozenset({NodeBase.OTHER, NodeBase.FUTURE, NodeBase.ERROR})
_UNDER_WAY = frozenset(
    "REBOOT_ISSUED REBOOT_REQUESTED POWERED_DOWN POWERING_DOWN POWERING_UP POWER_DOWN".split()
)


@dataclass(frozen=True, slots=True)
class Drain:
    """The verb."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _SPEC

    def look(self, call: Call) -> Observation:
        """Who holds the node, and which jobs would stay on it. Raises Unreadable, Refusal."""
        snapshot = readings.settled_snapshot(call, self.hands)
        node = readings.fresh_node(call, self.hands)
        jobs = readings.fresh_jobs(call, self.hands)
        boot_id = readings.boot_id(call, self.hands)
        found = holding(readings.scene(call, self.hands, snapshot, node, boot_id), call)
        standing, why = _standing(node, found)
        if standing is Standing.NOT_SO:
            why += _who_stays(node, jobs)
        return Observation(
            standing=standing,
            why=why,
            boot_id=boot_id,
            owner=found.owner,
            state=node.state,
            reason=node.reason,
            facts={
                **_staying(node, jobs),
                "reason_by": node.reason_by,
            },
        )

    def do(self, call: Call) -> Outcome:
        """Look once more, write, read back."""
        before = last_look(call, self.hands)
        if isinstance(before, Failed):
            return before
        standing, why = _standing(before.node, before.holding)
        if standing is Standing.OURS:
            output = _output(before.node, before.node, call)
            return Done(output=output, mark_text=before.node.reason)
        if standing is not Standing.NOT_SO:
            return Failed(error=f"nothing was written: {why}", kind=FailureKind.REFUSED)
        return self._write(call, before)

    def _write(self, call: Call, seen: Before) -> Outcome:
        before = seen.node
        text = mark_text(_cause(call), call.run, call.instance)
        after = written(call, self.hands, lambda cluster: cluster.drain(before.name, text))
        if not isinstance(after, Node):
            return after
        taken = _read_back(after, text) or overwritten(call, self.hands, before, after, text)
        if isinstance(taken, Failed):
            return taken
        blind = "; ".join(seen.snapshot.blind)
        jobs = Jobs(jobs=seen.snapshot.jobs_on(after.name), blind=blind)
        output = {**_output(before, after, call), **_staying(after, jobs), "unchecked": taken}
        return Done(output=output, mark_text=text)


def _standing(node: Node, found: Holding) -> tuple[Standing, str]:
    """What the holder and the state mean for a drain."""
    if node.unknown_flags or node.base in _NOT_TO_DRAIN:
        return Standing.BLOCKED, f"{node.name} is {node.state}: not a state this version acts on"
    if found.holder is Holder.US:
        return Standing.OURS, found.why
    if found.holder is not Holder.NOBODY:
        return Standing.FOREIGN, found.why
    under_way = node.flags & _UNDER_WAY
    if under_way:
        return Standing.BLOCKED, f"{node.name} is in a change of its own ({node.state})"
    if classify(node.reason).kind is ReasonKind.FOREIGN:
        by = f" by {node.reason_by}" if node.reason_by else ""
        return Standing.NOT_SO, f"{found.why}; its Reason '{node.reason[:120]}'{by} is replaced"
    return Standing.NOT_SO, found.why


def _read_back(after: Node, text: str) -> Failed | None:
    """Why what was read back is not our drain; None if it is."""
    if not after.draining:
        return Failed(
            error=f"{after.name} was {after.state} when read back: somebody resumed it at once, "
            "or the controller forgot the drain",
            kind=FailureKind.PERMANENT,
        )
    # Slurm may have written over our text already; a text of anybody else means they took over.
    if after.reason == text or classify(after.reason).kind is ReasonKind.INTERNAL:
        return None
    if after.reason.startswith(text) and classify(after.reason).kind is ReasonKind.MARK:
        return None
    return Failed(
        error=f"{after.reason_by or 'somebody'} took {after.name} over at the same moment; "
        f"its Reason is now '{after.reason[:200]}' and stays theirs",
        kind=FailureKind.PERMANENT,
    )


def _cause(call: Call) -> str:
    given = call.arguments.get("reason")
    return given if isinstance(given, str) and given.strip() else call.cause


def _output(before: Node, after: Node, call: Call) -> JsonMap:
    return {
        "state": after.state,
        "reason": first(after.reason, 500),
        "reason_before": first(before.reason, 500),
        "reason_before_by": first(before.reason_by if before.reason else "", 40),
        "why": first(_cause(call), 500),
    }


def _staying(node: Node, jobs: Jobs) -> dict[str, Json]:
    """The jobs that go on, for the card; a drain ends none."""
    stay = [] if jobs.blind else [job for job in jobs.jobs if job.holds_nodes]
    return {
        "jobs_stay": [_job(job) for job in stay[:_MOST_JOBS]],
        "job_count": None if jobs.blind else len(stay),
        "jobs_blind": first(jobs.blind, 200) or _unseen(node, stay),
    }


def _unseen(node: Node, jobs: list[Job]) -> str:
    return f"{node.name} is {node.state}, but no job is shown" if node.busy and not jobs else ""


def _job(job: Job) -> dict[str, Json]:
    return {
        "id": job.id,
        "user": first(job.user, 40),
        "name": first(job.name, 40),
        "gpus": job.gpus,
        "ends": minute(job.ends_at) if job.ends_at else "",
    }


def _who_stays(node: Node, jobs: Jobs) -> str:
    """One clause for the plan: whose jobs go on, and until when."""
    found = _staying(node, jobs)
    if found["jobs_blind"]:
        return f"; its jobs are not known: {found['jobs_blind']}"
    stay = [job for job in jobs.jobs if job.holds_nodes]
    named = [
        f"job {job.id} ({first(job.user, 40)}) goes on"
        f"{f' until {minute(job.ends_at)}' if job.ends_at else ', without an end'}"
        for job in stay[:_MOST_NAMED]
    ]
    more = f" and {len(stay) - _MOST_NAMED} more" if len(stay) > _MOST_NAMED else ""
    return f"; {', '.join(named)}{more}" if named else "; no job is on it"
