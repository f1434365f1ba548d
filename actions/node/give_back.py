"""`node.return`: gives a node that this bot drained back to service, behind its gate.

Called by the engine, also as the undo of a drain. It must never resume a node that is not ours by
the ledger, and never one whose gate could not be read.
"""

from dataclasses import dataclass

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
    Standing,
    ValueType,
)
from actions.node import readings
from actions.node.gate import Return, failing_at_controller, failing_gates
from actions.node.restore import UNCHECKED, overwritten
from actions.node.settings import Hands
from actions.node.writing import last_look, written
from actions.ownership import MARK_KIND, UNKNOWN_BOOT, holding
from actions.remote_values import HostFacts
from config.permissions import Permission

_SPEC = ActionSpec(
    name="node.return",
    version=1,
    summary="Give a node that this bot drained back to service, behind its gate",
    permission=Permission.NODE_RETURN,
    parameters={
        "node": Field(type=ValueType.NODE, help="node that this bot drained"),
        "boot_id": Field(
            type=ValueType.TEXT,
            help="boot id that the node must run, where a reboot was planned",
            required=False,
        ),
    },
    output={
        "state": Field(type=ValueType.TEXT, help="state after the write"),
        "unchecked": UNCHECKED,
    },
    clears_mark=MARK_KIND,
)


@dataclass(frozen=True, slots=True)
class GiveBack:
    """The verb."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _SPEC

    def look(self, call: Call) -> Observation:
        """Whether the gate holds. Raises Unreadable, Refusal."""
        snapshot = readings.settled_snapshot(call, self.hands)
        node = readings.fresh_node(call, self.hands)
        if _in_service(node):
            return _returned(node, call)
        facts = readings.host_facts(call, self.hands)
        boot_id = readings.boot_of(facts)
        # A boot that was planned is no reason to doubt the mark that was made before it.
        judged = UNKNOWN_BOOT if boot_id == _planned_boot(call) else boot_id
        found = holding(readings.scene(call, self.hands, snapshot, node, judged), call)
        wanted = Return(
            node=node,
            holding=found,
            planned_boot=_planned_boot(call),
            facts=facts,
            slurmd=self.hands.nodes.service(node.name, self.hands.settings.slurmd_unit),
        )
        gates = failing_gates(wanted)
        return Observation(
            standing=Standing.BLOCKED if gates else Standing.NOT_SO,
            why="; ".join(gates) or f"{node.name} passes every gate ({found.why})",
            boot_id=boot_id,
            owner=found.owner,
            state=node.state,
            reason=node.reason,
            facts={"gates": list(gates), "gpus_seen": _gpus(facts), "gpus": node.gpus},
        )

    def do(self, call: Call) -> Outcome:
        """Look once more at what the controller says, write, read back."""
        before = last_look(call, self.hands)
        if isinstance(before, Failed):
            return before
        if _in_service(before.node):
            return Done(output={"state": before.node.state})
        gates = failing_at_controller(before.node, before.holding)
        if gates:
            return Failed(error=f"nothing written: {'; '.join(gates)}", kind=FailureKind.REFUSED)
        return self._write(call, before.node)

    def _write(self, call: Call, before: Node) -> Outcome:
        after = written(call, self.hands, lambda cluster: cluster.resume(before.name))
        if not isinstance(after, Node):
            return after
        if not _in_service(after):
            return Failed(
                error=f"{after.name} is {after.state} after RESUME, "
                f"Reason '{after.reason[:200]}' by {after.reason_by or 'somebody'}: left so",
                kind=FailureKind.PERMANENT,
            )
        taken = overwritten(call, self.hands, before, after, "")
        if isinstance(taken, Failed):
            return taken
        return Done(output={"state": after.state, "unchecked": taken})


def _in_service(node: Node) -> bool:
    """Neither drained nor DOWN, so there is nothing to give back."""
    return not node.draining and node.base is not NodeBase.DOWN


def _returned(node: Node, call: Call) -> Observation:
    """After an interruption our own write did it; else somebody was faster."""
    recovering = call.intended_at is not None
    return Observation(
        standing=Standing.OURS if recovering else Standing.FOREIGN,
        why=f"{node.name} is {node.state}: not drained, so there is nothing to give back",
        owner="nobody",
        state=node.state,
        reason=node.reason,
    )


def _planned_boot(call: Call) -> str:
    given = call.arguments.get("boot_id")
    return given if isinstance(given, str) else ""


def _gpus(facts: HostFacts | None) -> int | None:
    return facts.gpus_seen if facts else None
