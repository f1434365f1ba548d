"""What pyslurm says of a cluster, as our values. Pure.

Called by `actions.slurm.pyslurm_source` with the attributes that it read, and by nobody else. What
the library cannot say (25.11.2, from its source and from recordings) and how that is filled:

* the controller's own facts and PrivateData: one question by `scontrol`, which names the cluster;
* task 0 of an array, which it takes for "no number": an array job without waiting tasks is task 0;
* `%2` of an array, which it cuts off: put back from its own `array_tasks_parallel`;
* GPUs asked for by `--gpus`: from what Slurm counts as requested, where it counts GPUs;
* GPUs in use where the cluster does not count GPUs: None, as in the text form of other releases;
* further flags of a job's state, and sockets in a Gres (`(S:0-1)`): left out, nothing decides by them;
* a dependency other than `after...`, and which of several with `?`: such a job's text is shorter;
* a name or comment that is the word `None`: empty.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta

from actions.cluster import Job, Node, NodeBase, Partition, Reservation
from actions.slurm.fields import (
    JsonObject,
    UnknownForm,
    encodable,
    gpu_count,
    moment_of,
    node_list,
    number_of,
    part_of,
    text_of,
    truth_of,
    words_of,
)
from actions.slurm.jobs import each_once, gpus_of, job_id, siblings, state_of_job
from actions.slurm.nodes import by_name, named, state_of_node
from config.node_names import NodeName

NODE_ATTRIBUTES = (
    *("name", "cluster", "state", "reason", "reason_user", "reason_time", "boot_time"),
    *("slurmd_start_time", "partitions", "active_features", "configured_gres", "total_cpus"),
    *("allocated_cpus", "real_memory", "allocated_tres", "address", "slurm_version"),
)
JOB_ATTRIBUTES = (
    *("id", "cluster", "name", "user_name", "user_id", "account", "state", "state_reason"),
    *("partition", "allocated_nodes", "required_nodes", "excluded_nodes", "num_nodes"),
    *("allocated_tres", "requested_tres", "gres_per_node", "is_batch_job"),
    *("is_requeueable", "requeue_count", "priority", "qos", "reservation", "dependencies"),
    *("comment", "submit_time", "start_time", "end_time", "time_limit", "array_id"),
    *("array_task_id", "array_tasks_waiting", "array_tasks_parallel", "heterogeneous_id"),
    *("heterogeneous_offset", "federation_origin", "federation_siblings_active"),
    *("federation_siblings_viable", "batch_host", "eligible_time", "extra", "working_directory"),
    *("standard_output", "constraints", "resource_sharing"),
)
PARTITION_ATTRIBUTES = (
    *("name", "cluster", "state", "nodes", "is_default", "is_hidden", "total_nodes"),
    *("priority_tier", "preempt_mode"),
)
RESERVATION_ATTRIBUTES = (
    *("name", "cluster", "nodes", "start_time", "end_time", "flags", "users", "accounts"),
    "is_active",
)

_FLAGS = {
    "MAINTENANCE": "MAINT",
    "IGNORE_RUNNING_JOBS": "IGNORE_JOBS",
    "SPECIFIC_NODES": "SPEC_NODES",
    "STATIC_NODES": "STATIC",
    "PARTITION_NODES_ONLY": "PART_NODES",
    "USER_DELETION": "USER_DELETE",
    "PURGE": "PURGE_COMP",
    "NO_JOB_HOLD_AFTER_END": "NO_HOLD_JOBS_AFTER_END",
}
"""Its names of a reservation's flags, where they are not Slurm's."""
_KINDS = ("after", "afterany", "afterburstbuffer", "aftercorr", "afternotok", "afterok")


def nodes_from_records(records: Iterable[JsonObject]) -> dict[NodeName, Node]:
    """Nodes by name; one that cannot be read is OTHER+UNREADABLE."""
    return by_name(((named(text_of(one, "name")), one) for one in records), _node)


def _node(record: JsonObject) -> Node:
    base, flags = _state(record)
    reason = text_of(record, "reason")
    gres = _listed(part_of(record, "configured_gres"), ":")
    used = part_of(record, "allocated_tres")
    return Node(
        name=named(text_of(record, "name")),
        base=base,
        flags=flags,
        reason=reason,
        reason_by=text_of(record, "reason_user") if reason else "",
        reason_at=moment_of(record, "reason_time") if reason else None,
        boot_time=moment_of(record, "boot_time"),
        slurmd_started_at=moment_of(record, "slurmd_start_time"),
        partitions=frozenset(words_of(record, "partitions")),
        features=frozenset(words_of(record, "active_features")),
        gres=gres,
        gpus=gpu_count(gres),
        gpus_used=gpu_count(_listed(used, "=")) if _counts_gpus(used) else None,
        cpus=number_of(record, "total_cpus") or 0,
        cpus_allocated=number_of(record, "allocated_cpus") or 0,
        memory_mib=number_of(record, "real_memory") or 0,
        tres_allocated=_listed(used, "="),
        address=text_of(record, "address"),
        version=text_of(record, "slurm_version"),
    )


def _state(record: JsonObject) -> tuple[NodeBase, frozenset[str]]:
    return state_of_node(tuple(text_of(record, "state").split("+")))


def _counts_gpus(tres: Mapping[str, object]) -> bool:
    return any(name.startswith("gres/gpu") for name in tres)


def _listed(counts: Mapping[str, object], joint: str) -> str:
    """As Slurm writes them: `cpu=1,mem=8T`, `gpu:h100:8`."""
    return encodable(",".join(f"{name}{joint}{count}" for name, count in counts.items()))


def jobs_from_records(records: Iterable[JsonObject]) -> tuple[Job, ...]:
    """The jobs, each once."""
    return each_once(_job(record) for record in records)


def _job(record: JsonObject) -> Job:
    slurm_id = number_of(record, "id")
    if not slurm_id:
        raise UnknownForm("a job without an id")
    array = _array(record)
    het = (number_of(record, "heterogeneous_id") or 0, number_of(record, "heterogeneous_offset"))
    state, flags = state_of_job(words_of(record, "state"))
    return Job(
        id=job_id(slurm_id, array, (het[0], het[1] or 0)),
        slurm_id=slurm_id,
        name=text_of(record, "name"),
        user=text_of(record, "user_name") or str(number_of(record, "user_id")),
        account=text_of(record, "account"),
        state=state,
        state_flags=flags,
        state_reason=text_of(record, "state_reason"),
        partition=text_of(record, "partition"),
        nodes=node_list(text_of(record, "allocated_nodes")),
        required_nodes=text_of(record, "required_nodes"),
        excluded_nodes=text_of(record, "excluded_nodes"),
        node_count=number_of(record, "num_nodes") or 0,
        gpus=_gpus(record),
        batch=truth_of(record, "is_batch_job", otherwise=True),
        requeue=truth_of(record, "is_requeueable", otherwise=False),
        restarts=number_of(record, "requeue_count") or 0,
        priority=number_of(record, "priority") or 0,
        qos=text_of(record, "qos"),
        reservation=text_of(record, "reservation"),
        dependency=_dependency(part_of(record, "dependencies")),
        comment=text_of(record, "comment"),
        submitted_at=moment_of(record, "submit_time"),
        started_at=moment_of(record, "start_time"),
        ends_at=moment_of(record, "end_time"),
        time_limit=_limit(record),
        array_job=array[0] or None,
        array_task=array[1],
        het_job=het[0] or None,
        federation_origin=text_of(record, "federation_origin"),
        federation_siblings=siblings(record),
        batch_host=text_of(record, "batch_host"),
        eligible_at=moment_of(record, "eligible_time"),
        extra=text_of(record, "extra"),
        work_dir=text_of(record, "working_directory"),
        stdout=text_of(record, "standard_output"),
        features=encodable(",".join(words_of(record, "constraints"))),
        shared=record.get("resource_sharing") != "NO",
    )


def _array(record: JsonObject) -> tuple[int, str]:
    """Number of the array, and its task or the tasks that wait in this record."""
    array = number_of(record, "array_id") or 0
    if not array:
        return 0, ""
    waiting = text_of(record, "array_tasks_waiting")
    if waiting:
        at_once = number_of(record, "array_tasks_parallel")
        return array, f"{waiting}%{at_once}" if at_once else waiting
    return array, str(number_of(record, "array_task_id") or 0)


def _gpus(record: JsonObject) -> int:
    return gpus_of(
        allocated=_listed(part_of(record, "allocated_tres"), "="),
        requests=(
            (_listed(part_of(record, "requested_tres"), "="), 1),
            (_listed(part_of(record, "gres_per_node"), ":"), number_of(record, "num_nodes") or 1),
        ),
    )


def _limit(record: JsonObject) -> timedelta | None:
    """In minutes; its word for none is a text."""
    if isinstance(record.get("time_limit"), str):
        return None
    minutes = number_of(record, "time_limit")
    return None if minutes is None else timedelta(minutes=minutes)


def _dependency(told: JsonObject) -> str:
    words = [f"{kind}:{job}" for kind in _KINDS for job in _jobs_of(told.get(kind))]
    if told.get("singleton"):
        words.append("singleton")
    return encodable(("?" if told.get("satisfy") == "any" else ",").join(words))


def _jobs_of(told: object) -> list[object]:
    return told if isinstance(told, list) else []


def partitions_from_records(records: Iterable[JsonObject]) -> tuple[Partition, ...]:
    """The partitions."""
    return tuple(
        Partition(
            name=text_of(record, "name"),
            state=text_of(record, "state"),
            nodes=node_list(text_of(record, "nodes")),
            default=truth_of(record, "is_default", otherwise=False),
            hidden=truth_of(record, "is_hidden", otherwise=False),
            total_nodes=number_of(record, "total_nodes") or 0,
            priority_tier=_tier(number_of(record, "priority_tier")),
            preempt_mode=text_of(record, "preempt_mode"),
        )
        for record in records
    )


def _tier(told: int | None) -> int:
    return 1 if told is None else told


def reservations_from_records(records: Iterable[JsonObject]) -> tuple[Reservation, ...]:
    """The reservations."""
    return tuple(
        Reservation(
            name=text_of(record, "name"),
            nodes=node_list(text_of(record, "nodes")),
            starts_at=moment_of(record, "start_time"),
            ends_at=moment_of(record, "end_time"),
            flags=_flags(text_of(record, "flags")),
            users=words_of(record, "users"),
            accounts=words_of(record, "accounts"),
            active=truth_of(record, "is_active", otherwise=True),
        )
        for record in records
    )


def _flags(text: str) -> frozenset[str]:
    """`ReservationFlags.MAINTENANCE|SPECIFIC_NODES`, as Python writes such values."""
    words = text.rpartition(".")[2].split("|")
    return frozenset(_FLAGS.get(word, word) for word in words if word not in {"", "0"})
