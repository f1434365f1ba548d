"""Whether a job list can be believed: an empty one is a claim that needs proof (hands 1). Pure.

With PrivateData=jobs an ordinary user gets no job and no error while the node is MIXED, and a node
with a suspended job shows IDLE with no CPU allocated (measured): so the nodes are compared with
the jobs, and hidden jobs are assumed where PrivateData says so and no other user's job is seen.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from actions.cluster import Job, Node
from config.node_names import NodeName

_JUST_ENDED = timedelta(seconds=10)
"""Nodes are asked before jobs; a job that ended in between still explains its node."""


def blindness(
    nodes: Iterable[Node],
    jobs: tuple[Job, ...],
    private_data: frozenset[str],
    own_user: str,
    at: datetime,
) -> tuple[str, ...]:
    """Why this job list cannot be believed; empty when it can. `at`: when the nodes were asked."""
    seen = explained(jobs, at)
    reasons = [
        f"{node.name} is {node.state} with {node.tres_allocated or 'work'}, but no job on it is visible"
        for node in nodes
        if node.busy and node.name not in seen
    ]
    if "jobs" in private_data and not any(job.user != own_user for job in jobs):
        reasons.append(
            "PrivateData=jobs is set and no other user's job is visible: give the bot's Slurm user "
            "AdminLevel=Operator"
        )
    return tuple(reasons)


def explained(jobs: tuple[Job, ...], at: datetime) -> frozenset[NodeName]:
    """Nodes on which some visible job works, or worked until a moment ago."""
    return frozenset(
        name
        for job in jobs
        if job.holds_nodes or (job.ends_at is not None and job.ends_at >= at - _JUST_ENDED)
        for name in job.nodes
    )
