"""The plainest spare: an idle node of the job's partition that is like the one that goes. Pure.

Used by `actions.catalogue` for `actions.job.ground`. It never takes a node that anybody holds, that is
out, or that differs in what a job can ask for.
"""

from actions.cluster import Job, Node, NodeBase, Snapshot
from actions.job.settings import Spare
from actions.job_losses import names_node


def idle_spare(snapshot: Snapshot, lost: Node, wanted: Job) -> Spare:
    """The first idle node that can stand in, or why there is none."""
    partitions = set(wanted.partition.split(","))
    held = {node for found in snapshot.reservations for node in found.nodes}
    unlike: list[str] = []
    for name in sorted(snapshot.nodes):
        node = snapshot.nodes[name]
        free = node.base is NodeBase.IDLE and not (node.busy or node.out or node.unknown_flags)
        if name in wanted.nodes or name in held or not (free and partitions & node.partitions):
            continue
        difference = _difference(node, lost) or (
            "the job excludes it" if names_node(wanted.excluded_nodes, name) else ""
        )
        if not difference:
            return Spare(node=name, why=f"{name} is idle and like {lost.name}")
        unlike.append(f"{name}: {difference}")
    why = f"no idle node of its partition is like it ({'; '.join(unlike[:3])})" if unlike else ""
    return Spare(node=None, why=why or "no node of its partition is idle and free")


def _difference(node: Node, lost: Node) -> str:
    """What a job could miss on it; empty if nothing."""
    if node.gres != lost.gres or node.gpus != lost.gpus:
        return f"GRES {node.gres or 'none'}, not {lost.gres or 'none'}"
    if node.cpus < lost.cpus or node.memory_mib < lost.memory_mib:
        return f"{node.cpus} CPUs and {node.memory_mib} MiB"
    missing = lost.features - node.features
    return f"without feature {', '.join(sorted(missing))}" if missing else ""
