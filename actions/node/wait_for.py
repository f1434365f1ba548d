"""`node.await`: waits until a node is as wanted; each call looks once at one node.

Called by the engine, which asks again at the time that a Wait names and ends the step at its
`timeout:`. Changes nothing.
"""

from dataclasses import dataclass
from datetime import timedelta

from actions.cluster import Node, NodeBase
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
from actions.node.emptied import emptied, held
from actions.node.readings import Jobs
from actions.node.restart import Boot, gave_up, moment, planned_boot, restarted
from actions.node.settings import NODE, Hands
from actions.ownership import UNKNOWN_BOOT, our_marks
from config.json_values import JsonMap
from config.permissions import Permission

_POLL = timedelta(seconds=10)
_CONDITIONS = ("responding", "registered", "idle", "drained", "rebooted")

_SPEC = ActionSpec(
    name="node.await",
    version=1,
    summary="Wait until a node answers, is registered, idle, drained or has restarted",
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
        "boot_id": Field(
            type=ValueType.TEXT, help="for rebooted: boot id that it had before", required=False
        ),
        "boot_time": Field(
            type=ValueType.TEXT,
            help="for rebooted: BootTime before, for hosts whose boot id cannot be read",
            required=False,
        ),
    },
    output={
        "state": Field(type=ValueType.TEXT, help="state when it was so"),
        "condition": Field(type=ValueType.TEXT, help="what was waited for"),
        "boot_id": Field(
            type=ValueType.TEXT, help="for rebooted: the boot id now, or empty", required=False
        ),
        "gave_up": Field(
            type=ValueType.TRUTH,
            help="for rebooted: Slurm gave it up after ResumeTimeout, and its drain with it",
            required=False,
        ),
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
        until = moment(deadline)
        if condition not in _CONDITIONS:
            return _refused(
                f"condition {str(condition)[:40]!r} is none of {', '.join(_CONDITIONS)}"
            )
        if deadline and until is None:
            return _refused(
                f"deadline {str(deadline)[:40]!r} is no moment such as 2026-11-30T17:20Z"
            )
        before = planned_boot(call)
        if condition == "rebooted" and not before.boot_id and before.boot_time is None:
            return _refused("rebooted needs the boot_id or the boot_time that it had before")
        try:
            seen = self._rebooted(call, before) if condition == "rebooted" else None
            node, missing = seen or self._missing(call, str(condition))
        except Unreadable as error:
            return Unknown(why=str(error))
        except Refusal as error:
            return _refused(str(error))
        if not missing:
            return Done(output=self._output(call, node, str(condition)))
        if condition == "rebooted" and gave_up(node):
            return Done(output={**self._output(call, node, "rebooted"), "gave_up": True})
        if condition == "drained" and not node.draining and our_marks(call, node.name):
            return Failed(error=_lifted(node), kind=FailureKind.PERMANENT)
        if until is not None and call.now >= until:
            why = f"{node.name} is not {condition} at its deadline {deadline}: {missing}"
            return Failed(error=why, kind=FailureKind.PERMANENT)
        return Wait(until=call.now + _POLL, why=f"{node.name} is not {condition}: {missing}")

    def _output(self, call: Call, node: Node, condition: str) -> JsonMap:
        output = {"state": node.state, "condition": condition}
        if condition != "rebooted":
            return output
        boot_id = readings.boot_id(call, self.hands)
        return {**output, "gave_up": False, "boot_id": "" if boot_id == UNKNOWN_BOOT else boot_id}

    def _rebooted(self, call: Call, before: Boot) -> tuple[Node, str]:
        """The node, and why it does not run another boot than before. Raises Unreadable, Refusal."""
        node, boot_id = readings.fresh_node(call, self.hands), readings.boot_id(call, self.hands)
        if restarted(before, Boot.of(node, boot_id)):
            return node, ""
        silent = ", its host is silent" if boot_id == UNKNOWN_BOOT else ""
        return node, f"{node.state}{silent}"

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
    if jobs.blind or condition == "drained":
        return emptied(node, jobs)
    idle = node.base is NodeBase.IDLE and not node.busy and not held(node, jobs)
    return "" if idle else f"{node.state}, {held(node, jobs)} job(s) on it"


def _lifted(node: Node) -> str:
    """It will not be drained by waiting: the drain that this bot made is not there any more."""
    return (
        f"{node.name} is {node.state}: our drain is gone, somebody lifted it or slurmctld forgot it; "
        "ask again if it is still to be emptied"
    )


def _refused(why: str) -> Failed:
    return Failed(error=why, kind=FailureKind.REFUSED)
