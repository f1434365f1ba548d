"""Jobs as `squeue` tells them, from JSON or from rows, as `actions.cluster.Job`. Pure.

Users write names and comments and may put anything there; see `records.rows` for why it cannot
pose as another field.
"""

from collections.abc import Iterable, Mapping

from actions.cluster import Job
from actions.slurm.fields import (
    NO_VALUES,
    JsonObject,
    UnknownForm,
    bare,
    gpu_count,
    minutes_of,
    moment,
    moment_of,
    node_list,
    number,
    number_of,
    span,
    split_words,
    text_of,
    truth_of,
    words_of,
)
from config.ids import JobId

ROW_FIELDS = (
    *("JobID", "JobArrayID", "ArrayJobID", "ArrayTaskID", "HetJobID", "UserName", "Account"),
    *("State", "Reason", "Partition", "NodeList", "ReqNodes", "NumNodes", "NumTasks"),
    *("tres-alloc", "tres-per-node", "tres-per-job", "tres-per-task", "BatchFlag", "Requeue"),
    *("RestartCnt", "PriorityLong", "QOS", "Reservation", "Dependency", "SubmitTime", "StartTime"),
    *("EndTime", "TimeLimit", "Cluster", "Origin", "SiblingsActive", "SiblingsViable"),
    *("BatchHost", "EligibleTime", "OverSubscribe", "Feature"),
    *("WorkDir", "STDOUT", "Comment", "Name"),
)
"""Fields that `squeue --Format` is asked for; `ExcNodes` comes from a second question."""

_STRONGEST = (
    *("COMPLETING", "STAGE_OUT", "CONFIGURING", "RESIZING", "REQUEUED", "REQUEUE_FED"),
    *("REQUEUE_HOLD", "SPECIAL_EXIT", "STOPPED", "REVOKED", "RESV_DEL_HOLD", "SIGNALING"),
)
"""Flags that squeue and 22.05 print instead of the base word, in the order of job_state_string()."""


def jobs_from_json(records: Iterable[JsonObject]) -> tuple[Job, ...]:
    """The jobs of a JSON answer, each once."""
    return each_once(_from_json(record) for record in records)


def jobs_from_rows(rows: Iterable[Mapping[str, str]]) -> tuple[Job, ...]:
    """The jobs of `squeue --Format` rows, each once."""
    return each_once(_from_row(row) for row in rows)


def each_once(jobs: Iterable[Job]) -> tuple[Job, ...]:
    """The jobs. Raises UnknownForm when one of them occurs twice."""
    found: dict[int, Job] = {}
    for job in jobs:
        if job.slurm_id in found:
            raise UnknownForm(f"job {job.slurm_id} occurs twice in one answer")
        found[job.slurm_id] = job
    return tuple(found.values())


def state_of_job(words: tuple[str, ...]) -> tuple[str, frozenset[str]]:
    """The word that squeue would print, and the others."""
    if not words:
        raise UnknownForm("a job without a state")
    word = next((flag for flag in _STRONGEST if flag in words), words[0])
    return word, frozenset(words) - {word}


def job_id(slurm_id: int, array: tuple[int, str], het: tuple[int, int]) -> JobId:
    """As people write it: `12`, `12_3`, `12_[4-9]`, `12+1`."""
    if het[0]:
        return JobId(f"{het[0]}+{het[1]}")
    if array[0] and array[1]:
        task = array[1] if array[1].isdigit() else f"[{array[1]}]"
        return JobId(f"{array[0]}_{task}")
    return JobId(str(slurm_id))


def _from_json(record: JsonObject) -> Job:
    slurm_id = number_of(record, "job_id")
    if slurm_id is None:
        raise UnknownForm("a job without an id")
    state, flags = state_of_job(words_of(record, "job_state"))
    array_job = number_of(record, "array_job_id") or 0
    task = number_of(record, "array_task_id")
    array_task = text_of(record, "array_task_string") if task is None else str(task)
    het_job = number_of(record, "het_job_id") or 0
    nodes = node_list(text_of(record, "nodes"))
    return Job(
        id=job_id(
            slurm_id, (array_job, array_task), (het_job, number_of(record, "het_job_offset") or 0)
        ),
        slurm_id=slurm_id,
        name=text_of(record, "name"),
        user=text_of(record, "user_name") or str(number_of(record, "user_id")),
        account=text_of(record, "account"),
        state=state,
        state_flags=flags,
        state_reason=text_of(record, "state_description") or text_of(record, "state_reason"),
        partition=text_of(record, "partition"),
        nodes=nodes,
        required_nodes=text_of(record, "required_nodes"),
        excluded_nodes=text_of(record, "excluded_nodes"),
        node_count=number_of(record, "node_count") or 0,
        gpus=_gpus_of_json(record),
        batch=truth_of(record, "batch_flag", otherwise=True),
        requeue=truth_of(record, "requeue", otherwise=False),
        restarts=number_of(record, "restart_cnt") or 0,
        priority=number_of(record, "priority") or 0,
        qos=text_of(record, "qos"),
        reservation=text_of(record, "resv_name"),
        dependency=text_of(record, "dependency"),
        comment=text_of(record, "comment"),
        submitted_at=moment_of(record, "submit_time"),
        started_at=moment_of(record, "start_time"),
        ends_at=moment_of(record, "end_time"),
        time_limit=minutes_of(record, "time_limit"),
        array_job=array_job or None,
        array_task=array_task if array_job else "",
        het_job=het_job or None,
        federation_origin=text_of(record, "federation_origin"),
        federation_siblings=siblings(record),
        batch_host=text_of(record, "batch_host"),
        eligible_at=moment_of(record, "eligible_time"),
        extra=text_of(record, "extra"),
        work_dir=text_of(record, "current_working_directory"),
        stdout=text_of(record, "stdout_expanded") or text_of(record, "standard_output"),
        features=text_of(record, "features"),
        shared="none" not in words_of(record, "shared"),
    )


def siblings(record: JsonObject) -> tuple[str, ...]:
    """Clusters of a federation on which the job may start or has copies."""
    both = ("federation_siblings_active", "federation_siblings_viable")
    return tuple(dict.fromkeys(word for key in both for word in words_of(record, key)))


def _gpus_of_json(record: JsonObject) -> int:
    return gpus_of(
        allocated=text_of(record, "tres_alloc_str"),
        requests=(
            (text_of(record, "tres_per_job"), 1),
            (text_of(record, "tres_per_node"), number_of(record, "node_count") or 1),
            (text_of(record, "tres_per_task"), number_of(record, "tasks") or 1),
        ),
    )


def gpus_of(*, allocated: str, requests: tuple[tuple[str, int], ...]) -> int:
    """GPUs the job holds or asks for: the allocation where the cluster counts GPUs, else the request."""
    counted = gpu_count(allocated)
    return counted or max(gpu_count(text) * times for text, times in requests)


def _from_row(row: Mapping[str, str]) -> Job:
    slurm_id = number(row["JobID"], "JobID")
    array_task = bare(row["ArrayTaskID"])
    in_array = bool(array_task)
    het_job = bare(row["HetJobID"])
    node_count = number(row["NumNodes"].partition("-")[0], "NumNodes")
    state, flags = state_of_job((row["State"],))
    return Job(
        id=JobId(row["JobArrayID"]),
        slurm_id=slurm_id,
        name=row["Name"],
        user=row["UserName"],
        account=bare(row["Account"]),
        state=state,
        state_flags=flags,
        state_reason=row["Reason"],
        partition=row["Partition"],
        nodes=node_list(row["NodeList"]),
        required_nodes=bare(row["ReqNodes"]),
        excluded_nodes=bare(row["ExcNodes"]),
        node_count=node_count,
        gpus=gpus_of(
            allocated=row["tres-alloc"],
            requests=(
                (row["tres-per-job"], 1),
                (row["tres-per-node"], node_count),
                (row["tres-per-task"], number(row["NumTasks"], "NumTasks")),
            ),
        ),
        batch=row["BatchFlag"] == "1",
        requeue=row["Requeue"] == "1",
        restarts=number(row["RestartCnt"], "RestartCnt"),
        priority=number(row["PriorityLong"], "PriorityLong"),
        qos=bare(row["QOS"]),
        reservation=bare(row["Reservation"]),
        dependency=bare(row["Dependency"]),
        comment=bare(row["Comment"]),
        submitted_at=moment(row["SubmitTime"]),
        started_at=moment(row["StartTime"]),
        ends_at=moment(row["EndTime"]),
        time_limit=span(row["TimeLimit"]),
        array_job=number(row["ArrayJobID"], "ArrayJobID") if in_array else None,
        array_task=array_task,
        het_job=int(het_job) if het_job.isdigit() and int(het_job) else None,
        federation_origin=_federated(row["Origin"]),
        federation_siblings=tuple(
            dict.fromkeys(
                (*_clusters(row["SiblingsActive"]), *_clusters(row["SiblingsViable"])),
            )
        ),
        batch_host="" if row["BatchHost"] in NO_VALUES else row["BatchHost"],
        eligible_at=moment(row["EligibleTime"]),
        work_dir=bare(row["WorkDir"]),
        stdout=bare(row["STDOUT"]),
        features=bare(row["Feature"]),
        shared=row["OverSubscribe"] != "NO",
    )


def _federated(text: str) -> str:
    """A cluster's name; squeue prints `NA` outside a federation."""
    return "" if text == "NA" else bare(text)


def _clusters(text: str) -> tuple[str, ...]:
    return split_words(_federated(text))
