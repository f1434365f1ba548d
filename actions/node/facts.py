"""Puts the readings of a node together into the flat facts that causes are diagnosed from. Pure.

Used by `actions.node.observe`. Null means "could not be read", the empty text or list "asked, and
there is none". The whole stays below one record of the ledger (8 KiB).
"""

from dataclasses import dataclass
from datetime import timedelta

from actions.cluster import Job, Node, NodeBase, Snapshot
from actions.contract import Call, Field, ValueType
from actions.host_verdict import Verdict
from actions.node.death import death, minute
from actions.node.fitting import first, last
from actions.node.neighbours import dropped_recently
from actions.node.readings import Jobs
from actions.ownership import (
    UNKNOWN_BOOT,
    Holder,
    Holding,
    Scene,
    holding,
    our_marks,
    reservation_of,
)
from actions.reasons import ReasonKind, classify
from actions.remote_values import HostFacts, Reach, Reachability, Service, ServiceState
from config.json_values import Json, JsonMap
from config.node_names import NodeName, fold

_MOST_JOBS = 8
_LONGEST_TAIL = 1200
_LONGEST_TEXT = 300
_LONGEST_SIGN = 160
_MOST_SIGNS = 5
_BOOT_MOVED = timedelta(seconds=60)
"""BootTime moves by a second at registrations (hands 2)."""
_MILLISECOND = timedelta(milliseconds=1)
_STOPPED = frozenset({ServiceState.INACTIVE, ServiceState.FAILED})

_TEXT, _NUMBER, _TRUTH, _FACTS = (
    ValueType.TEXT,
    ValueType.NUMBER,
    ValueType.TRUTH,
    ValueType.FACTS,
)

FACTS = {
    name: Field(type=kind, help=text)
    for name, kind, text in (
        ("base", _TEXT, "base word of the node's state"),
        ("flags", _FACTS, "list of state flags"),
        ("unknown_flags", _FACTS, "list of flags that this version does not know"),
        ("state", _TEXT, "BASE+FLAG+FLAG"),
        ("reason", _TEXT, "text of the Reason; from anybody"),
        ("reason_kind", _TEXT, "none, ours, internal (Slurm's own words) or foreign"),
        ("reason_by", _TEXT, "user who set the Reason, where the release tells it"),
        ("reason_age_s", _NUMBER, "seconds since the Reason was set"),
        ("our_mark", _TRUTH, "whether the ledger has an open drain of ours on it"),
        ("drained_by", _TEXT, "whose drain of ours it is: this_run, another_run, or empty"),
        ("holder", _TEXT, "nobody, us, slurm or other"),
        ("holder_why", _TEXT, "how the holder is known"),
        ("partitions", _FACTS, "list of partitions of the node"),
        ("partition_states", _FACTS, "mapping of partition to UP, DOWN, DRAIN or INACTIVE"),
        ("reservation", _TEXT, "name of an active reservation that holds the node, or empty"),
        ("gres", _TEXT, "generic resources by the controller's configuration"),
        ("gpus_configured", _NUMBER, "GPUs by the controller's configuration"),
        ("gpus_seen", _NUMBER, "GPUs that the node's own tools see"),
        ("memory_configured_mib", _NUMBER, "memory by the controller's configuration"),
        ("memory_seen_mib", _NUMBER, "memory that the node has"),
        ("cpus_configured", _NUMBER, "CPUs by the controller's configuration"),
        ("cpus_seen", _NUMBER, "CPUs that the node has"),
        ("responding", _TRUTH, "whether slurmd answers the controller"),
        ("jobs", _FACTS, "list of jobs on the node, the first eight"),
        ("job_count", _NUMBER, "how many jobs are on the node"),
        ("job_alone", ValueType.JOB, "id of the job, where exactly one is on the node, or empty"),
        ("jobs_blind", _TEXT, "why the job list cannot be believed, or empty"),
        ("reach", _TEXT, "verdict on reachability"),
        ("reach_evidence", _TEXT, "the line that proves the verdict"),
        ("host_alive", _TRUTH, "whether something on that host answered"),
        ("host_verdict", _TEXT, "alive, dead, silent, cut_off or unknown, from several places"),
        ("host_evidence", _FACTS, "list of sentences: what keeps it from being dead, what was met"),
        ("slurmd_state", _TEXT, "state of the unit slurmd"),
        ("munge_state", _TEXT, "state of the unit munge, asked where slurmd runs unheard"),
        ("slurmd_since", _TEXT, "when slurmd entered this state, by the node's clock"),
        ("boot_id", _TEXT, "boot id of the host"),
        ("boot_time", _TEXT, "BootTime by the controller, or empty"),
        ("boot_changed", _TRUTH, "whether it booted since we drained it or Slurm last heard of it"),
        ("clock_offset_ms", _NUMBER, "node clock minus bot clock"),
        ("kernel_tail", _TEXT, "lines of this boot's kernel log that look like a fault"),
        ("previous_boot_tail", _TEXT, "the same of the boot before"),
        ("slurmd_timeout_s", _NUMBER, "SlurmdTimeout of the controller"),
        ("dies_at_earliest", _TEXT, "when its jobs end at the earliest if nobody acts, or empty"),
        ("dies_at_latest", _TEXT, "the same at the latest"),
        ("dropped_recently", _NUMBER, "nodes that dropped within ten minutes, this one included"),
        ("dropped_nodes", _TEXT, "their names, folded"),
        ("out_in_pool", _NUMBER, "nodes of the pool that are out of service"),
        ("pool_size", _NUMBER, "nodes of the pool"),
        ("controller_version", _TEXT, "release of slurmctld"),
        ("controller_started", _TEXT, "when slurmctld started"),
        ("return_to_service", _NUMBER, "ReturnToService of the controller"),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was read."""

    snapshot: Snapshot
    node: Node
    jobs: Jobs
    reach: Reachability
    verdict: Verdict
    facts: HostFacts | None
    slurmd: Service
    munge: Service | None
    """None where it was not asked."""
    pool: frozenset[NodeName]
    hands_off: str


def flat(seen: Seen, call: Call) -> JsonMap:
    """All facts under their names."""
    return {
        **_controller_says(seen, call),
        **_held(seen, call),
        **_work(seen),
        **_host_says(seen, call),
        **_deadline(seen),
        **_neighbours(seen, call),
    }


def _controller_says(seen: Seen, call: Call) -> dict[str, Json]:
    node, controller = seen.node, seen.snapshot.controller
    states = {found.name: found.state for found in seen.snapshot.partitions}
    age = call.now - node.reason_at if node.reason_at and node.reason else None
    return {
        "base": node.base.value,
        "flags": sorted(node.flags),
        "unknown_flags": sorted(node.unknown_flags),
        "state": node.state,
        "reason": first(node.reason, _LONGEST_TEXT),
        "reason_by": first(node.reason_by, 40),
        "reason_age_s": None if age is None else max(0, int(age.total_seconds())),
        "partitions": sorted(node.partitions),
        "partition_states": {name: states.get(name, "?") for name in sorted(node.partitions)},
        "reservation": reservation_of(node.name, seen.snapshot.reservations),
        "gres": first(node.gres, _LONGEST_TEXT),
        "responding": node.responding,
        "slurmd_timeout_s": int(controller.slurmd_timeout.total_seconds()),
        "controller_version": controller.version,
        "controller_started": minute(controller.booted_at) if controller.booted_at else "",
        "return_to_service": controller.return_to_service,
        "boot_time": f"{node.boot_time:%Y-%m-%dT%H:%M:%SZ}" if node.boot_time else "",
    }


def _held(seen: Seen, call: Call) -> dict[str, Json]:
    scene = Scene(
        node=seen.node,
        reservations=seen.snapshot.reservations,
        boot_id=_boot_id(seen) or UNKNOWN_BOOT,
        hands_off=seen.hands_off,
    )
    found = holding(scene, call)
    reading = classify(seen.node.reason)
    kind = reading.kind.value
    if reading.kind is ReasonKind.MARK:
        ours = reading.mark is not None and reading.mark.instance == call.instance
        kind = "ours" if ours and found.holder is not Holder.OTHER else "foreign"
    return {
        "reason_kind": kind,
        "our_mark": bool(our_marks(call, seen.node.name)),
        "drained_by": _drained_by(found, call),
        "holder": found.holder.value,
        "holder_why": first(found.why, _LONGEST_TEXT),
    }


def _drained_by(found: Holding, call: Call) -> str:
    if found.holder is not Holder.US:
        return ""
    return "this_run" if found.owner == f"us:{call.run}" else "another_run"


def _work(seen: Seen) -> dict[str, Json]:
    if seen.jobs.blind:
        return {
            "jobs": None,
            "job_count": None,
            "job_alone": "",
            "jobs_blind": first(seen.jobs.blind, _LONGEST_TEXT),
        }
    jobs = [job for job in seen.jobs.jobs if job.holds_nodes]
    return {
        "jobs": [_job(job) for job in jobs[:_MOST_JOBS]],
        "job_count": len(jobs),
        "job_alone": jobs[0].id if len(jobs) == 1 else "",
        "jobs_blind": "",
    }


def _job(job: Job) -> Json:
    return {
        "id": job.id,
        "user": first(job.user, 40),
        "name": first(job.name, 40),
        "gpus": job.gpus,
        "nodes": len(job.nodes),
        "restarts": job.restarts,
        "batch": job.batch,
        "requeue": job.requeue,
    }


def _host_says(seen: Seen, call: Call) -> dict[str, Json]:
    node, facts, slurmd = seen.node, seen.facts, seen.slurmd
    unread = set(facts.not_read) if facts else {"kernel", "previous"}
    return {
        "reach": seen.reach.reach.value,
        "reach_evidence": first(seen.reach.evidence, _LONGEST_TEXT),
        "host_verdict": seen.verdict.host.value,
        "host_evidence": _evidence(seen.verdict),
        "host_alive": None if seen.reach.reach is Reach.NOT_ASKED else seen.reach.reach.host_alive,
        "munge_state": _state(seen.munge),
        "slurmd_state": None if slurmd.state is ServiceState.UNKNOWN else slurmd.state.value,
        "slurmd_since": f"{slurmd.since:%Y-%m-%dT%H:%M:%SZ}" if slurmd.since else "",
        "boot_id": _boot_id(seen) or None,
        "boot_changed": _boot_changed(seen, call),
        "gpus_configured": node.gpus,
        "gpus_seen": facts.gpus_seen if facts else None,
        "memory_configured_mib": node.memory_mib,
        "memory_seen_mib": facts.memory_mib if facts else None,
        "cpus_configured": node.cpus,
        "cpus_seen": facts.cpus if facts else None,
        "clock_offset_ms": facts.clock_offset_ms if facts else None,
        "kernel_tail": _tail(facts.kernel_tail if facts else "", "kernel" in unread),
        "previous_boot_tail": _tail(
            facts.previous_boot_tail if facts else "", "previous" in unread
        ),
    }


def _evidence(verdict: Verdict) -> list[Json]:
    lines = (*verdict.missing, *verdict.evidence)
    return [first(line, _LONGEST_SIGN) for line in lines[:_MOST_SIGNS]]


def _state(service: Service | None) -> str | None:
    if service is None or service.state is ServiceState.UNKNOWN:
        return None
    return service.state.value


def _boot_id(seen: Seen) -> str:
    return seen.facts.boot_id if seen.facts else ""


def _tail(text: str, unread: bool) -> str | None:
    return None if unread and not text else last(text, _LONGEST_TAIL)


def _boot_changed(seen: Seen, call: Call) -> bool | None:
    """Against our own mark if there is one, else against what the controller last heard."""
    boot_id = _boot_id(seen)
    for mark in our_marks(call, seen.node.name):
        if boot_id and mark.boot_id not in {"", UNKNOWN_BOOT}:
            return mark.boot_id != boot_id
    booted, heard = seen.facts.booted_at if seen.facts else None, seen.node.boot_time
    if booted is not None and heard is not None:
        return booted - heard > _BOOT_MOVED
    return False if seen.node.responding else None


def _deadline(seen: Seen) -> dict[str, Json]:
    """When the jobs die; empty where they do not, null where it cannot be said."""
    node, slurmd = seen.node, seen.slurmd
    if node.base is NodeBase.DOWN or (node.responding and slurmd.state not in _STOPPED):
        return {"dies_at_earliest": "", "dies_at_latest": ""}
    if slurmd.state not in _STOPPED or slurmd.since is None:
        return {"dies_at_earliest": None, "dies_at_latest": None}
    offset = (seen.facts.clock_offset_ms or 0) if seen.facts else 0
    found = death(slurmd.since - offset * _MILLISECOND, seen.snapshot.controller.slurmd_timeout)
    if found is None:
        return {"dies_at_earliest": "", "dies_at_latest": ""}
    return {
        "dies_at_earliest": minute(found.earliest),
        "dies_at_latest": minute(found.latest, up=True),
    }


def _neighbours(seen: Seen, call: Call) -> dict[str, Json]:
    nodes = {**seen.snapshot.nodes, seen.node.name: seen.node}
    dropped = dropped_recently(seen.node, nodes.values(), seen.pool, call.now)
    pool = [nodes[name] for name in seen.pool if name in nodes]
    return {
        "dropped_recently": len(dropped),
        "dropped_nodes": first(fold(dropped), _LONGEST_TEXT),
        "out_in_pool": sum(1 for node in pool if node.out),
        "pool_size": len(pool),
    }
