"""`node.down`: sets a node DOWN whose host is fenced, so that its jobs end in Slurm too (hands 2).

Called by the engine after the BMC has read "off". Until then old ranks may still write, so it must never
set a node DOWN whose power was not read off twice, and never one that this bot did not drain.
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
    Rejected,
    Standing,
    Unknown,
    UnknownNode,
    Unreadable,
    ValueType,
    WriteUnknown,
)
from actions.ownership import Holder
from actions.power import rules
from actions.power.hands import Hands
from actions.power.observe import NODE
from actions.power.readings import read
from actions.power.rules import Seen
from actions.power_hands import PowerState
from actions.reasons import mark_text
from config.permissions import Permission

_TWO = 2
_SPEC = ActionSpec(
    name="node.down",
    version=1,
    summary="Set a node DOWN whose machine is certainly off, so that its jobs end in Slurm too",
    permission=Permission.NODE_POWER,
    parameters={"node": NODE},
    output={
        "state": Field(type=ValueType.TEXT, help="state after the write"),
        "power_evidence": Field(type=ValueType.TEXT, help="what proves that it is off"),
    },
    may_end_jobs=True,
    persons=_TWO,
    takes_node_out=True,
    # Looking once more (ssh, ports, neighbours, the power twice), the write, and a reading.
    time_limit=timedelta(minutes=5),
)


@dataclass(frozen=True, slots=True)
class Down:
    """The verb."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _SPEC

    def look(self, call: Call) -> Observation:
        """Whether it is off for certain, whose jobs end, and whether it is DOWN already. Raises Unreadable,
        Refusal.
        """
        if call.cluster not in self.hands.changes:
            raise Refusal(f"this back end of {call.cluster} cannot set nodes DOWN")
        seen = read(call, self.hands)
        standing, why = _standing(seen)
        if standing is Standing.FOREIGN and call.intended_at is not None:
            standing = Standing.OURS
        return Observation(
            standing=standing,
            why=why,
            boot_id=seen.boot_id,
            owner=seen.holding.owner,
            state=seen.node.state,
            reason=seen.node.reason,
            jobs_end=seen.losses if standing is Standing.NOT_SO else (),
        )

    def do(self, call: Call) -> Outcome:
        """Look once more, write, read back."""
        try:
            seen = read(call, self.hands)
        except Unreadable as error:
            return Failed(error=f"nothing was done: {error}", kind=FailureKind.RETRYABLE)
        except Refusal as error:
            return Failed(error=str(error), kind=FailureKind.REFUSED)
        standing, why = _standing(seen)
        if standing is Standing.FOREIGN:
            return _done(seen, seen.node)
        if standing is not Standing.NOT_SO:
            return Failed(error=f"nothing was done: {why}", kind=FailureKind.REFUSED)
        return self._write(call, seen)

    def _write(self, call: Call, seen: Seen) -> Outcome:
        # The same text again: the drain and its mark stay ours.
        mark = seen.holding.mark
        text = mark.text if mark is not None and mark.text else ""
        text = text or mark_text(call.cause, call.run, call.instance)
        try:
            self.hands.changes[call.cluster].down(seen.node.name, text)
        except WriteUnknown as error:
            return Unknown(why=str(error))
        except Unreadable as error:
            return Failed(error=f"nothing was written: {error}", kind=FailureKind.RETRYABLE)
        except (Rejected, UnknownNode, Refusal) as error:
            return Failed(error=f"Slurm said no: {error}", kind=FailureKind.PERMANENT)
        try:
            after = self.hands.clusters[call.cluster].fresh_node(seen.node.name)
        except (Unreadable, Refusal, UnknownNode) as error:
            return Unknown(why=f"written, but not read back: {error}")
        if after.base is NodeBase.DOWN and after.draining:
            return _done(seen, after)
        why = f"{after.name} is {after.state} after it was set DOWN: somebody changed it at once"
        return Failed(error=why, kind=FailureKind.PERMANENT)


def _standing(seen: Seen) -> tuple[Standing, str]:
    node = seen.node
    if seen.power.state is not PowerState.OFF:
        why = f"{node.name} is not shown to be off ({seen.power.state}: {seen.power.evidence})"
        return Standing.BLOCKED, f"{why}: its ranks may still write"
    wrong = rules.contradiction(seen)
    if wrong:
        return Standing.BLOCKED, wrong
    if seen.holding.holder is not Holder.US or seen.holding.mark is None:
        return Standing.BLOCKED, f"{node.name} is not drained by us: {seen.holding.why}"
    if node.base is NodeBase.DOWN and not node.busy:
        return Standing.FOREIGN, f"{node.name} is {node.state} and holds no job"
    if seen.jobs_blind:
        why = f"it cannot be told whose jobs end on {node.name}: {seen.jobs_blind[:160]}"
        return Standing.BLOCKED, why
    return Standing.NOT_SO, f"{node.name} is {node.state}, and off ({seen.power.evidence})"


def _done(seen: Seen, after: Node) -> Done:
    return Done(output={"state": after.state, "power_evidence": seen.power.evidence[:300]})
