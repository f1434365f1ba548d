"""`node.return`: gives a node that this bot drained back to service, behind its gate.

Called by the engine, also as the undo of a drain. It must never resume a node that is not ours by
the ledger, and never one whose gate could not be read. The one write that may follow its own is the
drain that takes it back, where the host restarted in between.
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
    Mark,
    Observation,
    Outcome,
    Standing,
    Unknown,
    Unreadable,
    ValueType,
)
from actions.node import readings
from actions.node.gate import Return, failing_at_controller, failing_gates
from actions.node.restore import UNCHECKED, drain_command, overwritten
from actions.node.settings import Hands
from actions.node.writing import last_look, written
from actions.ownership import MARK_KIND, UNKNOWN_BOOT, holding, our_marks
from actions.reasons import mark_text
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
            return self._returned(node, call)
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

    def _returned(self, node: Node, call: Call) -> Observation:
        """After an interruption our own write did it, if the host still runs the boot that passed
        the gate; else somebody was faster.
        """
        recovering = call.intended_at is not None
        standing = Standing.OURS if recovering else Standing.FOREIGN
        why = f"{node.name} is {node.state}: not drained, so there is nothing to give back"
        boot = UNKNOWN_BOOT
        if recovering:
            boot, restarted = self._boot_since(node, call)
            if restarted:
                standing, why = Standing.BLOCKED, restarted
        return Observation(
            standing=standing,
            why=why,
            boot_id=boot,
            owner="nobody",
            state=node.state,
            reason=node.reason,
        )

    def _boot_since(self, node: Node, call: Call) -> tuple[str, str]:
        """The boot, and why it is not the one that passed the gate. Raises Unreadable."""
        boot = readings.boot_id(call, self.hands)
        marks = our_marks(call, node.name)
        gated = _planned_boot(call) or (marks[0].boot_id if marks else "")
        if boot == UNKNOWN_BOOT:
            raise Unreadable(f"{node.name} is in service again, but its host is silent")
        if gated in {"", boot}:
            return boot, ""
        return boot, (
            f"{node.name} is in service, but it restarted after it passed the gate (boot {gated}, "
            f"now {boot}): drain it or say that this boot is good"
        )

    def do(self, call: Call) -> Outcome:
        """Look once more at what the controller says, write, read back."""
        before = last_look(call, self.hands)
        if isinstance(before, Failed):
            return before
        if _in_service(before.node):
            return Done(output={"state": before.node.state})
        gates = failing_at_controller(before.node, before.holding)
        mark = before.holding.mark
        if gates or mark is None:
            return Failed(error=f"nothing written: {'; '.join(gates)}", kind=FailureKind.REFUSED)
        return self._write(call, before.node, mark)

    def _write(self, call: Call, before: Node, mark: Mark) -> Outcome:
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
        return self._restarted(call, after, mark) or Done(
            output={"state": after.state, "unchecked": taken}
        )

    def _restarted(self, call: Call, after: Node, mark: Mark) -> Failed | Unknown | None:
        """The boot once more: a restart between the look and the write is not what the gate passed."""
        gated = _planned_boot(call) or mark.boot_id
        boot = readings.boot_id(call, self.hands)
        if boot == gated:
            return None
        if boot == UNKNOWN_BOOT:
            return Unknown(why=f"{after.name} is in service again, but its host fell silent")
        why = f"{after.name} restarted while it was given back (boot {gated}, now {boot})"
        return self._drain_again(call, after, mark, why)

    def _drain_again(self, call: Call, after: Node, mark: Mark, why: str) -> Failed:
        """Take our own write back: nobody has looked at this boot. The mark still stands in the ledger."""
        text = mark_text("restarted", mark.run, call.instance)
        again = written(call, self.hands, lambda cluster: cluster.drain(after.name, text))
        if isinstance(again, Node) and again.draining:
            taken = overwritten(call, self.hands, after, again, text)
            if isinstance(taken, Failed):
                return taken
            return Failed(error=f"{why}: it is drained again", kind=FailureKind.PERMANENT)
        return Failed(
            error=f"{why} and could not be drained again: new work may start on it",
            kind=FailureKind.PERMANENT,
            restore=drain_command(after.name, text),
        )


def _in_service(node: Node) -> bool:
    """Neither drained nor DOWN, so there is nothing to give back."""
    return not node.draining and node.base is not NodeBase.DOWN


def _planned_boot(call: Call) -> str:
    given = call.arguments.get("boot_id")
    return given if isinstance(given, str) else ""


def _gpus(facts: HostFacts | None) -> int | None:
    return facts.gpus_seen if facts else None
