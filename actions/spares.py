"""Which node can stand in for one that is lost, and by which way: the site's order (hands 2). Pure.

Used by `actions.node.spare` and, for jobs, by `actions.catalogue`. It never takes a node that somebody
else holds, that is out for another reason, or that differs from the lost one in what a job can ask for.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from actions.cluster import Job, Node, NodeBase, Partition, Snapshot
from config.node_names import NodeName, NodeNameError, expand_unchecked


class SpareHow(StrEnum):
    """The ways, in the order in which they are tried."""

    NONE_NEEDED = "none_needed"
    """An idle node of its partitions is there anyway."""
    RESERVATION = "reservation"
    """A reservation of ours gives one up."""
    DRAINED = "drained"
    """One that this bot drained is returned."""
    PARTITION = "partition"
    """One of another partition is written into its partition, until slurm.conf follows."""
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpareRules:
    """What the site says of its spares."""

    nodes: frozenset[NodeName] = frozenset()
    """Those that may be taken from a reservation, out of a drain, or from another partition."""
    features: tuple[str, ...] = ()
    """Beginnings of the features that must be the same, such as `image=` and `rack=`; without any, the
    spare must have each feature of the lost node."""
    partition_edit: bool = False
    """Whether a partition may be written as the last resort."""


NO_SPARES = SpareRules()
"""Of a site that keeps none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What this bot holds by its ledger, and what nobody may touch."""

    drained: frozenset[NodeName] = frozenset()
    reservations: frozenset[str] = frozenset()
    """Names of our reservations."""
    hands_off: Mapping[NodeName, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What stands in."""

    how: SpareHow
    node: NodeName | None
    why: str
    refused: tuple[str, ...] = ()
    """One sentence for each node that was looked at and not taken, with the difference."""
    name: str = ""
    """The reservation that gives it up, or the partition that gets it."""
    members: tuple[NodeName, ...] = ()
    """What that reservation or partition has afterwards."""
    before: tuple[NodeName, ...] = ()
    """And what it has now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    snapshot: Snapshot
    lost: Node
    wanted: Job | None
    rules: SpareRules
    held: Held

    def unlike(self, node: Node) -> str:
        """Why the job, or any, could miss something on it; empty if not."""
        excluded = _listed(self.wanted.excluded_nodes) if self.wanted else frozenset()
        if excluded is None or node.name in excluded:
            return "the job excludes it"
        return difference(self.lost, node, self.rules.features)

    def spares(self) -> Iterator[Node]:
        """Nodes that the site calls spares, as the cluster knows them."""
        for name in sorted(self.rules.nodes - {self.lost.name}):
            if name in self.snapshot.nodes and name not in self.held.hands_off:
                yield self.snapshot.nodes[name]

    def reservation_of(self, name: NodeName) -> str:
        """The active reservation that holds a node; empty if none does."""
        found = (one for one in self.snapshot.reservations if one.active and name in one.nodes)
        return next((one.name for one in found), "")


def choose(
    snapshot: Snapshot, lost: Node, wanted: Job | None, rules: SpareRules, held: Held
) -> Choice:
    """The first way that has a node which fits, or why none has."""
    asked = _Question(snapshot=snapshot, lost=lost, wanted=wanted, rules=rules, held=held)
    refused: dict[str, None] = {}
    for way in (_idle, _reserved, _drained, _from_other_partition):
        for found in way(asked):
            if isinstance(found, Choice):
                return found
            refused[found] = None
    why = "no node of its partitions is idle, and no spare fits"
    return Choice(how=SpareHow.NONE, node=None, why=why, refused=tuple(refused))


def difference(lost: Node, spare: Node, prefixes: tuple[str, ...]) -> str:
    """What a job could miss on the spare; empty if nothing."""
    if (spare.gres, spare.gpus) != (lost.gres, lost.gpus):
        return f"GRES {spare.gres or 'none'}, not {lost.gres or 'none'}"
    if spare.cpus < lost.cpus:
        return f"{spare.cpus} CPUs, not {lost.cpus}"
    if spare.memory_mib < lost.memory_mib:
        return f"{spare.memory_mib} MiB, not {lost.memory_mib}"
    if not prefixes:
        missing = lost.features - spare.features
        return f"without feature {', '.join(sorted(missing))}" if missing else ""
    ours, theirs = _counted(lost, prefixes), _counted(spare, prefixes)
    if ours == theirs:
        return ""
    return f"{', '.join(sorted(theirs)) or 'none of the features'}, not {', '.join(sorted(ours))}"


def _counted(node: Node, prefixes: tuple[str, ...]) -> frozenset[str]:
    return frozenset(name for name in node.features if name.startswith(prefixes))


def _idle(asked: _Question) -> Iterator[Choice | str]:
    lost, taken = asked.lost, asked.wanted.nodes if asked.wanted else ()
    wanted = frozenset(asked.wanted.partition.split(",")) if asked.wanted else lost.partitions
    for node in sorted(asked.snapshot.nodes.values(), key=lambda one: one.name):
        if node.name == lost.name or node.name in taken or not node.partitions & wanted:
            continue
        if _free(node) and not asked.reservation_of(node.name):
            unlike = asked.unlike(node)
            if unlike:
                yield f"{node.name} is idle, but has {unlike}"
                continue
            why = f"{node.name} is idle in {', '.join(sorted(node.partitions & wanted))}"
            yield Choice(how=SpareHow.NONE_NEEDED, node=node.name, why=why)


def _reserved(asked: _Question) -> Iterator[Choice | str]:
    for node in asked.spares():
        name = asked.reservation_of(node.name)
        if name not in asked.held.reservations or not node.partitions & asked.lost.partitions:
            continue
        held = next(one for one in asked.snapshot.reservations if one.name == name)
        left = tuple(one for one in held.nodes if one != node.name)
        obstacle = (
            asked.unlike(node)
            or ("" if _free(node) else f"state {node.state}")
            or ("" if left else f"nothing else in {name}, which would be empty")
        )
        if obstacle:
            yield f"{node.name} is kept in {name}, but has {obstacle}"
            continue
        yield Choice(
            how=SpareHow.RESERVATION,
            node=node.name,
            why=f"{node.name} is a spare that {name} gives up",
            name=name,
            members=left,
            before=held.nodes,
        )


def _drained(asked: _Question) -> Iterator[Choice | str]:
    for node in asked.spares():
        if not node.draining or not node.partitions & asked.lost.partitions:
            continue
        if node.name not in asked.held.drained:
            yield f"{node.name} is drained, but not by this bot"
            continue
        obstacle = asked.unlike(node) or _unfit(node)
        if obstacle:
            yield f"{node.name} is a drained spare, but has {obstacle}"
            continue
        why = f"{node.name} is a spare that this bot drained"
        alone = (node.name,)
        yield Choice(how=SpareHow.DRAINED, node=node.name, why=why, members=alone, before=alone)


def _from_other_partition(asked: _Question) -> Iterator[Choice | str]:
    if not asked.rules.partition_edit:
        return
    named = {one.name: one for one in asked.snapshot.partitions}
    for node in asked.spares():
        missing = sorted(asked.lost.partitions - node.partitions)
        if not missing or asked.reservation_of(node.name) or not _free(node):
            continue
        group = named.get(missing[0])
        several = "" if len(missing) == 1 else f"no way into {', '.join(missing)} at once"
        obstacle = asked.unlike(node) or several
        if obstacle or group is None:
            yield f"{node.name} is in another partition, but has {obstacle or 'no partition to go to'}"
            continue
        yield _edit(group, node)


def _edit(group: Partition, node: Node) -> Choice:
    return Choice(
        how=SpareHow.PARTITION,
        node=node.name,
        why=f"{node.name} is a spare that is written into {group.name}; slurm.conf must follow",
        name=group.name,
        members=tuple(dict.fromkeys((*group.nodes, node.name))),
        before=group.nodes,
    )


def _free(node: Node) -> bool:
    """Idle, and nothing keeps work from it but a reservation of ours."""
    shut = node.out and not node.flags <= _OF_RESERVATIONS
    return node.base is NodeBase.IDLE and not (node.busy or shut or node.unknown_flags)


_OF_RESERVATIONS = frozenset({"MAINTENANCE", "RESERVED", "PLANNED"})


def _unfit(node: Node) -> str:
    """Why a drained node could not be given back; its gate looks closer."""
    fit = node.base is NodeBase.IDLE and node.responding and not (node.busy or node.unknown_flags)
    return "" if fit and "INVALID_REG" not in node.flags else f"state {node.state}"


def _listed(text: str) -> frozenset[NodeName] | None:
    """Nodes of a job's own list; None for one that cannot be read, which then excludes all."""
    if not text.strip():
        return frozenset()
    try:
        return frozenset(expand_unchecked(text).names)
    except NodeNameError:
        return None
