"""The facts that conditions of causes may read, each with its meaning.

`node` is the output of the action `node.observe`. A fact that could not be read is null; a
condition over null is "not known" and never a match. An empty text or list means: asked, and there
is none. Printed into the docs.
"""

from collections.abc import Mapping
from typing import Final

NODE_FACTS: Final[Mapping[str, str]] = {
    "base": "base word of the node's state: IDLE, ALLOCATED, MIXED, DOWN, UNKNOWN, …",
    "flags": "list of state flags: DRAIN, NOT_RESPONDING, INVALID_REG, …",
    "unknown_flags": "list of flags that this version does not know",
    "state": "BASE+FLAG+FLAG, as the controller says it",
    "reason": "text of the Reason; from anybody",
    "reason_kind": "none, ours, internal (Slurm's own words) or foreign",
    "reason_by": "user who set the Reason, where the release tells it",
    "reason_age_s": "seconds since the Reason was set",
    "our_mark": "whether the ledger has an open drain of ours on it",
    "drained_by": "whose drain of ours it is: this_run, another_run, or empty",
    "holder": "who holds the node: nobody, us, slurm or other",
    "holder_why": "one sentence: how that is known",
    "partitions": "list of partitions of the node",
    "partition_states": "mapping of partition to UP, DOWN, DRAIN or INACTIVE",
    "reservation": "name of an active reservation that holds the node, or empty",
    "gres": "generic resources by the controller's configuration",
    "gpus_configured": "GPUs by the controller's configuration",
    "gpus_seen": "GPUs that the node's own tools see",
    "memory_configured_mib": "memory by the controller's configuration",
    "memory_seen_mib": "memory that the node has",
    "cpus_configured": "CPUs by the controller's configuration",
    "cpus_seen": "CPUs that the node has",
    "responding": "whether slurmd answers the controller",
    "jobs": "list of jobs on the node",
    "job_count": "how many jobs are on the node",
    "job_alone": "id of the job, where exactly one is on the node, or empty",
    "jobs_blind": "why the job list cannot be believed, or empty",
    "reach": "verdict on reachability: alive, refused, auth_failed, …, time_out, no_route, not_asked",
    "reach_evidence": "the line that proves the verdict",
    "host_alive": "whether something on that host answered",
    "host_verdict": "alive, dead (silent everywhere, for slurmctld too), silent, cut_off or unknown",
    "host_evidence": "list of sentences: what keeps a silent host from being dead, and what was met",
    "munge_state": "state of the unit munge, asked where slurmd runs unheard; else null",
    "slurmd_state": "state of the unit slurmd: active, inactive, failed, unknown, …",
    "slurmd_since": "when slurmd entered this state",
    "boot_id": "boot id of the host",
    "boot_time": "BootTime by the controller, or empty",
    "boot_changed": "whether the host booted since the controller last heard from it",
    "clock_offset_ms": "the node's clock minus the bot's, milliseconds",
    "kernel_tail": "lines of this boot's kernel log that look like a fault",
    "previous_boot_tail": "the same of the boot before",
    "slurmd_timeout_s": "SlurmdTimeout of the controller",
    "dies_at_earliest": "when the controller would give the node up at the earliest; its jobs end then",
    "dies_at_latest": "the same at the latest",
    "dropped_recently": "nodes that dropped within ten minutes, this one included",
    "dropped_nodes": "their names, folded",
    "out_in_pool": "nodes of the pool that are out of service",
    "pool_size": "nodes of the pool",
    "controller_version": "release of slurmctld",
    "controller_started": "when slurmctld started",
    "return_to_service": "ReturnToService of the controller",
}

FACT_SETS: Final[Mapping[str, frozenset[str]]] = {"node": frozenset(NODE_FACTS)}
"""By the name that a causes file gives under `facts:`."""
