"""A healthy node as `node.observe` describes it, to be changed into each scene."""

from config.json_values import Json

HEALTHY: dict[str, Json] = {
    "base": "ALLOCATED",
    "flags": [],
    "unknown_flags": [],
    "state": "ALLOCATED",
    "reason": "",
    "reason_kind": "none",
    "reason_by": "",
    "reason_age_s": None,
    "our_mark": False,
    "drained_by": "",
    "holder": "nobody",
    "holder_why": "the node is in service",
    "gres": "gpu:h100:8",
    "jobs_blind": "",
    "clock_offset_ms": 3,
    "slurmd_timeout_s": 300,
    "dropped_nodes": "gpu-017",
    "controller_version": "25.11.1",
    "controller_started": "2026-11-01T08:00Z",
    "return_to_service": 1,
    "partitions": ["train"],
    "partition_states": {"train": "UP"},
    "reservation": "",
    "gpus_configured": 8,
    "gpus_seen": 8,
    "memory_configured_mib": 2_000_000,
    "memory_seen_mib": 2_063_000,
    "cpus_configured": 192,
    "cpus_seen": 192,
    "responding": True,
    "jobs": ["1042"],
    "job_alone": "",
    "job_count": 1,
    "reach": "alive",
    "reach_evidence": "a command ran",
    "host_alive": True,
    "host_verdict": "alive",
    "host_evidence": ["ssh: alive (a command ran)"],
    "munge_state": None,
    "slurmd_state": "active",
    "slurmd_since": "2026-11-29T08:00:00Z",
    "boot_id": "5f1c",
    "boot_time": "2026-11-27T17:20:00Z",
    "boot_changed": False,
    "kernel_tail": "",
    "previous_boot_tail": "",
    "dies_at_earliest": "",
    "dies_at_latest": "",
    "dropped_recently": 1,
    "out_in_pool": 0,
    "pool_size": 64,
}


def node(base: str = "ALLOCATED", *flags: str, **changed: Json) -> dict[str, Json]:
    """The healthy node with this state and these facts."""
    state = "+".join([base, *sorted(flags)])
    facts: dict[str, Json] = {**HEALTHY, "base": base, "flags": sorted(flags), "state": state}
    facts["responding"] = "NOT_RESPONDING" not in flags
    return {**facts, **changed}


def slurmd_dead(**changed: Json) -> dict[str, Json]:
    """Scene A1: a job runs, slurmd has failed, the host is alive."""
    scene: dict[str, Json] = {
        "slurmd_state": "failed",
        "slurmd_since": "2026-11-30T02:11:05Z",
        "dies_at_earliest": "2026-11-30T02:16:05Z",
        "dies_at_latest": "2026-11-30T02:17:45Z",
    }
    return node("ALLOCATED", "NOT_RESPONDING", **{**scene, **changed})


def invalid(**changed: Json) -> dict[str, Json]:
    """Scene A4: Slurm refused the registration and drained the node itself."""
    scene: dict[str, Json] = {
        "reason": "gres/gpu count reported lower than configured (0 < 8)",
        "reason_kind": "internal",
        "reason_by": "slurm",
        "holder": "slurm",
        "reason_age_s": 60,
        "job_count": 0,
        "jobs": [],
    }
    return node("IDLE", "DRAIN", "INVALID_REG", **{**scene, **changed})


def drained_by_a_person(*flags: str, **changed: Json) -> dict[str, Json]:
    """Scene A13: somebody drained the node."""
    scene: dict[str, Json] = {
        "reason": "bad PSU fan, ticket 88",
        "reason_kind": "foreign",
        "reason_by": "ann",
        "holder": "other",
        "holder_why": "gpu-017 is drained by ann: 'bad PSU fan, ticket 88'",
        "reason_age_s": 90_000,
        "job_count": 0,
        "jobs": [],
    }
    return node("IDLE", "DRAIN", *flags, **{**scene, **changed})
