"""Finds out whether our write wiped out what somebody wrote at the same moment, and says how to
put it back (promise 4).

Used by drain and return after their write. Slurm has no compare-and-set and its node record keeps
only the last Reason, so this asks the accounting's history, where the site has one.
"""

import shlex

from actions.cluster import Node
from actions.contract import Call, Failed, FailureKind, Field, Unreadable, ValueType
from actions.hands import WrittenReason
from actions.node.fitting import first
from actions.node.settings import Hands
from actions.reasons import ReasonKind, classify
from config.clock import MICROSECOND
from config.node_names import NodeName

UNCHECKED = Field(
    type=ValueType.TEXT,
    help="why it is not known whether a Reason of the very moment of the write was replaced; or empty",
    required=False,
)
"""Output of each verb that asks."""
_SHOWN = 200


def overwritten(call: Call, hands: Hands, before: Node, after: Node, ours: str) -> Failed | str:
    """What was written between our last look and our write, as a failure; else why that could not be
    found out, and the empty text if nothing was written.

    `before` was read right before the write, `after` right after it; `ours` is what was written.
    """
    history = hands.histories.get(call.cluster)
    if history is None or call.node is None:
        return "nothing tells which Reasons this node was given"
    # The accounting keeps whole seconds of the controller's clock, which may be behind ours.
    at = min(call.now, after.reason_at or call.now)
    try:
        written = history.written_since(call.node, at - at.microsecond * MICROSECOND)
    except Unreadable as error:
        return first(str(error), _SHOWN)
    lost = [entry for entry in written if _foreign(entry, call) and entry.reason != before.reason]
    if lost and ours != lost[-1].reason:
        return _failure(call.node, lost[-1])
    merged = [entry for entry in written if _another_writes(entry, ours, after)]
    return _textless(call.node, merged[-1]) if merged else ""


def drain_command(node: NodeName, reason: str) -> str:
    """The command with which a person sets a drain with this Reason again."""
    return shlex.join(["scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={reason}"])


def _foreign(entry: WrittenReason, call: Call) -> bool:
    reading = classify(entry.reason)
    if reading.kind is ReasonKind.MARK and reading.mark is not None:
        return reading.mark.instance != call.instance
    return reading.kind is ReasonKind.FOREIGN


def _another_writes(entry: WrittenReason, ours: str, after: Node) -> bool:
    """Our text beside another's name: of two writes in one second accounting keeps the first writer
    and the last text (measured).
    """
    return bool(ours and entry.reason == ours and entry.by and after.reason_by) and (
        entry.by != after.reason_by
    )


def _textless(node: NodeName, lost: WrittenReason) -> Failed:
    when = f"{lost.at:%Y-%m-%d %H:%M:%S} UTC"
    return Failed(
        error=(
            f"in the second of our write {lost.by} gave {node} a Reason, which ours replaced: the "
            "node is theirs (accounting lost the text, slurmctld.log has it)"
        ),
        kind=FailureKind.PERMANENT,
        restore=drain_command(node, f"drain of {lost.by} at {when}, text in slurmctld.log"),
    )


def _failure(node: NodeName, lost: WrittenReason) -> Failed:
    return Failed(
        error=(
            f"at the same moment {lost.by or 'somebody'} gave {node} the Reason "
            f"'{lost.reason[:_SHOWN]}', and our write replaced it: the node is theirs"
        ),
        kind=FailureKind.PERMANENT,
        restore=drain_command(node, lost.reason),
    )
