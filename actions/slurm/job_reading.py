"""Picks one job out of what Slurm answers when it is asked for one. Pure.

Asked for one part of a het job, squeue shows all parts; asked for an array, all tasks (measured). Called
by `actions.slurm.tools` and `actions.slurm.cli`.
"""

import re
from collections.abc import Iterable
from dataclasses import replace

from actions.cluster import Job
from actions.contract import UnknownJob
from actions.slurm.fields import UnknownForm
from actions.slurm.records import shown_records
from config.ids import JobId

_EXTRA = re.compile(r"^ {3}Extra=(.*?) ?$", re.MULTILINE)
_TASK = re.compile(r"(\d+)_(\d+)", re.ASCII)
_SHOWN = 8


def picked(job: JobId, found: Iterable[Job]) -> Job:
    """The job of that name. Raises UnknownJob, and says what the number stands for where it is known."""
    jobs = tuple(found)
    for one in jobs:
        if one.id == job:
            return one
    task = _TASK.fullmatch(job)
    for one in jobs:
        if task and one.array_job == int(task[1]) and int(task[2]) in waiting_tasks(one.array_task):
            return replace(one, id=job, array_task=task[2])
    if not jobs:
        raise UnknownJob(f"the controller knows no job {job} (any more)")
    names = ", ".join(one.id for one in jobs[:_SHOWN])
    raise UnknownJob(f"{job} is no single job: name one of {names}")


def waiting_tasks(text: str) -> frozenset[int]:
    """Numbers of the tasks that wait in one record (`4-9,12%2`, `0-8:2`); none where the list is cut."""
    tasks: set[int] = set()
    for part in text.partition("%")[0].split(","):
        span = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", part, re.ASCII)
        if span is None:
            continue
        first, last = int(span[1]), int(span[2] or span[1])
        tasks.update(range(first, last + 1, max(1, int(span[3] or 1))))
    return frozenset(tasks)


def extra_of(answer: str, slurm_id: int) -> str:
    """`--extra` of this job in a `scontrol show job` answer, where it stands alone on its line."""
    records = [
        record
        for record in shown_records(answer, "JobId")
        if re.match(rf"JobId={slurm_id}(?!\d)", record)
    ]
    lines = [line for record in records for line in _EXTRA.findall(record)]
    if len(records) != 1 or len(lines) > 1:
        raise UnknownForm(
            f"job {slurm_id} is shown {len(records)} times with Extra {len(lines)} times: some text in "
            "it poses as another"
        )
    return lines[0] if lines else ""
