"""Whether work may still be on a node, in one sentence. Pure; used by `reboot` and `wait_for`."""

from actions.cluster import Node, drained
from actions.node.readings import Jobs


def emptied(node: Node, jobs: Jobs) -> str:
    """Why the strict predicate of hands 2 does not hold (drained, no job of any state); or empty."""
    if jobs.blind:
        return f"its job list cannot be believed: {jobs.blind[:120]}"
    return "" if drained(node, jobs.jobs) else f"{node.state}, {held(node, jobs)} job(s) on it"


def held(node: Node, jobs: Jobs) -> int:
    """How many jobs are on it."""
    return sum(1 for job in jobs.jobs if job.holds_nodes and node.name in job.nodes)
