"""What a site says of its jobs: which may be started again, and where they keep checkpoints.

The section `restartable` of a cluster; used by `config.settings`, read by `actions.job_losses`. Names
and comments of jobs are user-written: here are only the patterns that they are held against. Pure.
"""

import re
from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, Field

from config.fields import Key, Section

_LONGEST = 500
_PLACES = re.compile(r"\{([^{}]*)\}|[{}]")
KNOWN_PLACES = frozenset({"job", "user", "account", "name", "work_dir"})
"""What may stand in braces in a path."""


class CheckpointFormat(StrEnum):
    """Who writes the checkpoints, and so what a complete one looks like."""

    DCP = "dcp"
    """PyTorch's distributed checkpoints: `.metadata` beside the shards."""
    MEGATRON = "megatron"
    """Megatron-LM: `iter_…` folders and `latest_checkpointed_iteration.txt`."""
    DEEPSPEED = "deepspeed"
    """DeepSpeed: `global_step…` folders and `latest`."""
    NEMO = "nemo"
    """NeMo: names that carry `-unfinished` while they are written."""
    ORBAX = "orbax"
    """Orbax: `.orbax-checkpoint-tmp` while it is written, `commit_success.txt` where nothing is renamed."""
    HF = "hf"
    """Hugging Face Trainer: `checkpoint-…` folders with `trainer_state.json`."""
    MARKER = "marker"
    """Folders that hold a file which the site names."""


def _path(value: object) -> str:
    """An absolute path with places. Raises ValueError."""
    if not isinstance(value, str) or not value.startswith(("/", "{work_dir}")):
        raise ValueError("an absolute path is expected, beginning with / or with {work_dir}")
    if "{work_dir}" in value.removeprefix("{work_dir}") or len(value) > _LONGEST:
        raise ValueError("{work_dir} is a whole path: it stands at the beginning, and once")
    if not value.isprintable() or ".." in value.split("/"):
        raise ValueError("a path has no '..' and no control characters")
    for place in _PLACES.finditer(value):
        if place[1] not in KNOWN_PLACES:
            known = ", ".join(f"{{{name}}}" for name in sorted(KNOWN_PLACES))
            raise ValueError(f"only {known} have a value in a path")
    return value


def _glob(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST:
        raise ValueError("a pattern such as 'train-*' is expected")
    return value


PathTemplate = Annotated[str, BeforeValidator(_path)]
Glob = Annotated[str, BeforeValidator(_glob)]


class JobsMeant(Section):
    """Which jobs a rule is for: all that is given must fit, and something must be given."""

    accounts: tuple[Key, ...] = ()
    """Accounts of which the job must have one. Default: any."""
    partitions: tuple[Key, ...] = ()
    """Partitions of which the job must be in one. Default: any."""
    names: tuple[Glob, ...] = ()
    """Patterns with `*` and `?` of which one must fit the job's name. Default: any."""
    comments: tuple[Glob, ...] = ()
    """Patterns of which one must fit the job's comment. Default: any."""
    work_dirs: tuple[Glob, ...] = ()
    """Patterns of which one must fit the job's working folder. Default: any."""


class Restartable(JobsMeant):
    """Jobs that go on from a checkpoint when they are started again, as their owners promised."""

    checkpoint: PathTemplate
    """Folder of the checkpoints from which they resume, as `/shared/{user}/{name}/checkpoints`: `{job}`,
    `{user}`, `{account}` and `{name}` stand for what the job says of itself, `{work_dir}` at the
    beginning for its working folder."""
    format: CheckpointFormat
    """Who writes them: dcp, megatron, deepspeed, nemo, orbax, hf or marker."""
    marker: Key | None = None
    """Name of the file that makes a checkpoint complete, for format marker. Default: none."""
    min_nodes: Annotated[int, Field(strict=True, ge=1, le=100_000)] = 1
    """With fewer nodes they do not start. Default: 1."""
