"""`node.await`: waits until a node is as wanted; each call looks once at one node.

Called by the engine, which asks again at the time that a Wait names and ends the step at its
`timeout:`. Changes nothing.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from actions.cluster import Node, NodeBase, drained
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
from actions.node import readings
from actions.node.readings import Jobs
from actions.node.settings import NODE, Hands
from config.permissions import Permission

_POLL = timedelta(seconds=10)
_CONDITIONS = ("responding", "registered", "idle", "drained")

_SPEC = ActionSpec(
    name="node.await",
    version=1,
    summary="Wait until a node answers, is registered, idle or drained",
    permission=Permission.NODE_READ,
    parameters={
        "node": NODE,
        "condition": Field(type=ValueType.TEXT, help=", ".join(_CONDITIONS)),
        "deadline": Field(
            type=ValueType.TEXT,
            help="moment in UTC (2026-11-30T17:20Z) after which it has failed; besides the "
            "step's own time limit",
            required=False,
        ),
    },
    output={
        "state": Field(type=ValueType.TEXT, help="state when it was so"),
        "condition": Field(type=ValueType.TEXT, help="what was waited for"),
    },
    looks_only=True,
    time_limit=timedelta(hours=1),
)


@dataclass(frozen=True, slots=True)
class WaitFor:
    """The verb."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _SPEC

    def look(self, call: Call) -> Observation:
        """What `do` would see. Raises Unreadable, Refusal."""
        node = readings.fresh_node(call, self.hands)
        return Observation(
            standing=Standing.NOT_SO, why=f"{node.name} is {node.state}", state=node.state
        )

    def do(self, call: Call) -> Outcome:
        """Done when it is so, Wait while it is not."""
        condition, deadline = call.arguments.get("condition"), call.arguments.get("deadline")
        until = _moment(deadline)
        if condition not in _CONDITIONS:
            return _refused(
                f"condition {str(condition)[:40]!r} is none of {', '.join(_CONDITIONS)}"
            )
        if deadline and until is None:
            return _refused(
                f"deadline {str(deadline)[:40]!r} is no moment such as 2026-11-30T17:20Z"
            )
        try:
            node, missing = self._missing(call, str(condition))
        except Unreadable as error:
            return Unknown(why=str(error))
        except Refusal as error:
            return _refused(str(error))
        if not missing:
            return Done(output={"state": node.state, "condition": str(condition)})
        if until is not None and call.now >= until:
            why = f"{node.name} is not {condition} at its deadline {deadline}: {missing}"
            return Failed(error=why, kind=FailureKind.PERMANENT)
        return Wait(until=call.now + _POLL, why=f"{node.name} is not {condition}: {missing}")

    def _missing(self, call: Call, condition: str) -> tuple[Node, str]:
        """The node, and why the condition does not hold; the empty string when it does."""
        node = readings.fresh_node(call, self.hands)
        if condition in {"responding", "registered"}:
            return node, _answers(node, registered=condition == "registered")
        missing = _empty(node, readings.fresh_jobs(call, self.hands), condition)
        if missing or condition == "idle":
            return node, missing
        # Drained counts only when seen twice (hands 2): the record may be on the way to COMPLETING.
        again = readings.fresh_node(call, self.hands)
        return again, _empty(again, readings.fresh_jobs(call, self.hands), condition)


def _answers(node: Node, *, registered: bool) -> str:
    if not node.responding or node.base in {NodeBase.UNKNOWN, NodeBase.OTHER}:
        return f"slurmd does not answer the controller ({node.state})"
    if registered and "INVALID_REG" in node.flags:
        return f"its registration is refused ({node.state}): {node.reason[:120]}"
    return ""


def _empty(node: Node, jobs: Jobs, condition: str) -> str:
    if jobs.blind:
        return f"its job list cannot be believed: {jobs.blind[:120]}"
    if condition == "drained":
        return "" if drained(node, jobs.jobs) else f"{node.state}, {_held(node, jobs)} job(s) on it"
    idle = node.base is NodeBase.IDLE and not node.busy and not _held(node, jobs)
    return "" if idle else f"{node.state}, {_held(node, jobs)} job(s) on it"


def _held(node: Node, jobs: Jobs) -> int:
    return sum(1 for job in jobs.jobs if job.holds_nodes and node.name in job.nodes)


def _moment(text: object) -> datetime | None:
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else None


def _refused(why: str) -> Failed:
    return Failed(error=why, kind=FailureKind.REFUSED)
