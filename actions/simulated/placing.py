"""Which nodes a pending job gets: free, reserved for it, wanted and not excluded. Changes nothing.

Called by `queue_rules` and `preemption`.
"""

from collections.abc import Collection

from actions.simulated.state import ISSUED, REQUESTED, JobRecord, NodeRecord, State
from config.node_names import NodeName, fold

SHUT = frozenset({"DRAIN", "FAIL", "INVALID_REG", "NOT_RESPONDING", ISSUED, REQUESTED})
"""Flags that keep new work away."""

_BESIDE_OTHERS = frozenset({"MAINT", "OVERLAP"})


def barred(state: State, job: JobRecord) -> str:
    """Slurm's word for why no end of other work lets it start; empty if one would."""
    if set(job.required_nodes) & set(job.excluded_nodes):
        return "BadConstraints"
    if job.reservation and job.user not in state.reservations[job.reservation].users:
        return "Reservation"
    gone = [name for name in job.required_nodes if _shut(state.nodes[name])]
    return f"ReqNodeNotAvail, UnavailableNodes:{fold(gone)}" if gone else ""


def place(
    state: State, job: JobRecord, without: Collection[int] = frozenset()
) -> tuple[NodeName, ...]:
    """Nodes for the job, those of `-w` first, then in the partition's order; empty if too few.

    `without` are jobs that are thought away.
    """
    closed = _closed(state, job)
    found: list[NodeName] = []
    for name in _in_order(state, job):
        wanted = name in job.required_nodes
        if len(found) >= job.node_count and not wanted:
            break
        fits = (
            name not in closed
            and name not in job.excluded_nodes
            and _fits(state.nodes[name], job, without)
        )
        if fits:
            found.append(name)
        elif wanted:
            return ()
    return tuple(found) if len(found) >= job.node_count else ()


def _in_order(state: State, job: JobRecord) -> tuple[NodeName, ...]:
    """Wanted nodes, then those of a FLEX reservation (measured), then the partition's."""
    nodes = state.partitions[job.partition].nodes
    own = state.reservations.get(job.reservation)
    first = () if own is None else tuple(name for name in nodes if name in own.nodes)
    return tuple(dict.fromkeys((*job.required_nodes, *first, *nodes)))


def _closed(state: State, job: JobRecord) -> frozenset[NodeName]:
    """Nodes that reservations keep from this job: others' always, all but its own's if it has one.

    One with FLEX lets its jobs out to nodes that nobody has reserved.
    """
    own = state.reservations.get(job.reservation)
    over_others = own is not None and bool(own.flags & _BESIDE_OTHERS)
    closed = {
        name
        for reservation in state.reservations.values()
        if reservation.active(state.now) and reservation is not own and not over_others
        for name in reservation.nodes
    }
    if own is not None and "FLEX" not in own.flags:
        closed |= state.nodes.keys() - set(own.nodes)
    return frozenset(closed)


def _shut(node: NodeRecord) -> bool:
    """Whether it takes no new work."""
    return node.down or bool(node.flags & SHUT)


def _fits(node: NodeRecord, job: JobRecord, without: Collection[int]) -> bool:
    """Whether the node takes the job; one without GPUs, and an exclusive one, have it to themselves."""
    if _shut(node) or not set(filter(None, job.constraint.split("&"))) <= node.features:
        return False
    there = {number: gpus for number, gpus in node.jobs.items() if number not in without}
    if not job.gpus_per_node or not job.shared:
        return not there
    return 0 not in there.values() and node.gpus - sum(there.values()) >= job.gpus_per_node
