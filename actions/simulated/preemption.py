"""Which running jobs a pending one may push away, in a simple form. Changes nothing.

Called by `queue_rules`: by QOS where slurm.conf says preempt/qos, by the tier of the partition with
preempt/partition_prio; the cheapest victims first, and only as many as are needed.
"""

from actions.simulated import placing
from actions.simulated.state import JobRecord, State

_BY_QOS, _BY_TIER = "preempt/qos", "preempt/partition_prio"


def victims(state: State, job: JobRecord) -> tuple[JobRecord, ...]:
    """Jobs whose leaving lets this one start; none where nothing helps."""
    if state.settings.preempt_type not in {_BY_QOS, _BY_TIER}:
        return ()
    candidates = sorted(
        (each for each in state.jobs.values() if _may_push(state, job, each)),
        key=lambda each: (each.priority, -each.slurm_id),
    )
    for count in range(1, len(candidates) + 1):
        nodes = placing.place(state, job, {each.slurm_id for each in candidates[:count]})
        if nodes:
            # Only those on the nodes that it gets then: the others would leave for nothing.
            return tuple(each for each in candidates[:count] if set(each.nodes) & set(nodes))
    return ()


def mode(state: State, victim: JobRecord) -> str:
    """What becomes of it."""
    return state.partitions[victim.partition].preempt_mode


def _may_push(state: State, job: JobRecord, other: JobRecord) -> bool:
    if other.state != "RUNNING" or mode(state, other) == "OFF":
        return False
    if state.settings.preempt_type == _BY_QOS:
        return other.qos in state.settings.qos_preempts.get(job.qos, ())
    tiers = state.partitions[job.partition].priority_tier
    return tiers > state.partitions[other.partition].priority_tier
