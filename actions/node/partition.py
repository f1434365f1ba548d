"""`partition.write` gives a partition a spare node, the last resort (hands 2); `partition.restore` undoes it.

Called by the engine. The full list of checked names is written, and the partition and each node of it
read back; what is not exactly so is taken back at once. The edit is gone after a reconfigure or a start
of slurmctld. It must never write a list that was not made from what the partition has now.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from actions.cluster import Partition
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
from actions.hands import NodeChanges
from actions.node import readings
from actions.node.settings import NODE, Hands
from config.node_names import NodeName, fold
from config.permissions import Permission

_WRITE = ActionSpec(
    name="partition.write",
    version=1,
    summary="Give a partition a spare node until slurm.conf follows; the last resort",
    permission=Permission.PARTITION_WRITE,
    parameters={
        "node": replace(NODE, help="the spare"),
        "partition": Field(type=ValueType.TEXT, help="partition that gets it"),
        "nodes": Field(type=ValueType.NODES, help="all nodes that it has afterwards"),
        "before": Field(type=ValueType.NODES, help="all nodes that it has now, compared"),
    },
    output={
        "nodes": Field(type=ValueType.TEXT, help="its nodes as read back, folded"),
        "say": Field(type=ValueType.TEXT, help="what a person must do", required=False),
    },
    sets_mark="partition",
    mark_on="partition",
    undo="partition.restore",
)
_RESTORE = replace(
    _WRITE,
    name="partition.restore",
    summary="Give a partition the nodes back that it had before partition.write",
    sets_mark=None,
    clears_mark="partition",
    undo=None,
)
FOLLOW = (
    "slurm.conf must follow: {node} is in {partition} only until the next reconfigure "
    "or start of slurmctld"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    partition: str
    wanted: tuple[NodeName, ...]
    expected: tuple[NodeName, ...]


def _written(call: Call) -> _Change:
    return _Change(
        partition=str(call.arguments.get("partition", "")),
        wanted=_nodes(call, "nodes"),
        expected=_nodes(call, "before"),
    )


def _restored(call: Call) -> _Change:
    change = _written(call)
    return replace(change, wanted=change.expected, expected=change.wanted)


@dataclass(frozen=True, slots=True)
class SetPartition:
    """Both verbs: they differ in which list is wanted."""

    hands: Hands
    spec: ActionSpec
    change: Callable[[Call], _Change]

    def look(self, call: Call) -> Observation:
        """What the partition has. Raises Unreadable, Refusal."""
        change = self.change(call)
        found = self._changes(call).fresh_partition(change.partition)
        standing, why = _standing(change, found)
        # The reason becomes the mark's text where a crash lost the outcome: the node that is wanted there.
        return Observation(
            standing=standing,
            why=why,
            owner=f"us:{call.run}",
            state=fold(found.nodes)[:500],
            reason=str(call.node),
        )

    def do(self, call: Call) -> Outcome:
        """Look once more, write, read back, and take it back where it is not exactly so."""
        change = self.change(call)
        try:
            changes = self._changes(call)
            found = changes.fresh_partition(change.partition)
        except Unreadable as error:
            return Failed(error=f"nothing was written: {error}", kind=FailureKind.RETRYABLE)
        except Refusal as error:
            return Failed(error=str(error), kind=FailureKind.REFUSED)
        standing, why = _standing(change, found)
        if standing is Standing.OURS:
            return self._done(call, change, found)
        if standing is not Standing.NOT_SO:
            return Failed(error=f"nothing was written: {why}", kind=FailureKind.REFUSED)
        return self._write(call, change, changes)

    def _write(self, call: Call, change: _Change, changes: NodeChanges) -> Outcome:
        try:
            changes.set_partition_nodes(change.partition, change.wanted)
        except WriteUnknown as error:
            return Unknown(why=str(error))
        except Unreadable as error:
            return Failed(error=f"nothing was written: {error}", kind=FailureKind.RETRYABLE)
        except (Rejected, UnknownNode, Refusal) as error:
            # With an error Slurm applies half of a list (measured): what was there is written again.
            return self._take_back(call, change, changes, f"Slurm said no: {error}")
        try:
            wrong = self._not_so(call, change, changes)
        except Unreadable as error:
            return Unknown(why=f"written, but not read back: {error}")
        except Refusal as error:
            wrong = str(error)
        if wrong:
            return self._take_back(call, change, changes, wrong)
        return self._done(call, change, None)

    def _not_so(self, call: Call, change: _Change, changes: NodeChanges) -> str:
        """What was read back and is not as written; empty if all is. Raises Unreadable, Refusal."""
        found = changes.fresh_partition(change.partition)
        if frozenset(found.nodes) != frozenset(change.wanted):
            return f"{change.partition} has {fold(found.nodes)} after the write"
        if found.total_nodes != len(change.wanted):
            return f"{change.partition} counts {found.total_nodes} nodes, not {len(change.wanted)}"
        moved = frozenset(change.wanted) ^ frozenset(change.expected)
        cluster = readings.cluster_of(call, self.hands)
        for name in sorted(moved):
            inside = change.partition in cluster.fresh_node(name).partitions
            if inside is not (name in change.wanted):
                return f"{name} is {'still' if inside else 'not'} in {change.partition}"
        return ""

    def _take_back(
        self, call: Call, change: _Change, changes: NodeChanges, why: str
    ) -> Failed | Unknown:
        command = f"scontrol update PartitionName={change.partition} Nodes={fold(change.expected)}"
        try:
            changes.set_partition_nodes(change.partition, change.expected)
            left = frozenset(changes.fresh_partition(change.partition).nodes)
        except (WriteUnknown, Unreadable, Rejected, UnknownNode, Refusal) as error:
            text = f"{why}; and what was there could not be written again: {error}"
            return Failed(error=text, kind=FailureKind.PERMANENT, restore=command)
        if left != frozenset(change.expected):
            text = f"{why}; {change.partition} has {fold(sorted(left))} now"
            return Failed(error=text, kind=FailureKind.PERMANENT, restore=command)
        return Failed(error=f"{why}: what was there is there again", kind=FailureKind.PERMANENT)

    def _done(self, call: Call, change: _Change, found: Partition | None) -> Done:
        nodes = fold(found.nodes if found else change.wanted)
        say = FOLLOW.format(node=call.node, partition=change.partition)
        # The mark says which node is wanted there: `runbooks.partition_watch` looks for it.
        return Done(output={"nodes": nodes[:500], "say": say}, mark_text=str(call.node))

    def _changes(self, call: Call) -> NodeChanges:
        """Raises Refusal."""
        if call.cluster not in self.hands.changes:
            raise Refusal(f"this back end of {call.cluster} cannot write partitions")
        return self.hands.changes[call.cluster]


def write_partition(hands: Hands) -> SetPartition:
    """`partition.write`."""
    return SetPartition(hands, _WRITE, _written)


def restore_partition(hands: Hands) -> SetPartition:
    """`partition.restore`."""
    return SetPartition(hands, _RESTORE, _restored)


def _standing(change: _Change, found: Partition) -> tuple[Standing, str]:
    now = frozenset(found.nodes)
    if now == frozenset(change.wanted):
        return Standing.OURS, f"{change.partition} has exactly {fold(change.wanted)}"
    if now != frozenset(change.expected):
        why = f"{change.partition} has {fold(found.nodes)}, not {fold(change.expected)} as planned"
        return Standing.BLOCKED, why
    why = f"{change.partition} has {fold(found.nodes)} and gets {fold(change.wanted)}"
    return Standing.NOT_SO, why


def _nodes(call: Call, name: str) -> tuple[NodeName, ...]:
    given = call.arguments.get(name)
    items: Sequence[object] = given if isinstance(given, list | tuple) else ()
    return tuple(NodeName(item) for item in items if isinstance(item, str))
