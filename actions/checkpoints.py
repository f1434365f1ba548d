"""Whether a checkpoint is whole, told from names, sizes and times of its files. Pure.

Used by `actions.job` with what a node's program lists. Nothing here is ever loaded: a pickle runs code.
A size that stays the same proves nothing, and what is not known is called unknown: it is shown, never
deleted, and nobody resumes from it by our word (hands 3).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from actions.node_readings import Folder, FolderEntry
from config.job_settings import CheckpointFormat as Format


class Wholeness(StrEnum):
    """What can be said of one checkpoint."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One checkpoint, judged."""

    name: str
    step: int
    whole: Wholeness
    why: str
    at: datetime | None = None
    """When its last file was written."""


TRACKERS: Mapping[Format, str] = {
    Format.MEGATRON: "latest_checkpointed_iteration.txt",
    Format.DEEPSPEED: "latest",
}
"""Files that name the checkpoint from which a restart goes on."""

_STEP_NAMES: Mapping[Format, re.Pattern[str]] = {
    Format.MEGATRON: re.compile(r"iter_(\d{1,12})", re.ASCII),
    Format.DEEPSPEED: re.compile(r"global_step(\d{1,12})", re.ASCII),
    Format.HF: re.compile(r"checkpoint-(\d{1,12})", re.ASCII),
    Format.ORBAX: re.compile(r"(?:[A-Za-z_]+_)?(\d{1,12})(?:\.orbax-checkpoint-tmp.*)?", re.ASCII),
    Format.NEMO: re.compile(r".*?step[=_-]?(\d{1,12}).*", re.ASCII),
}
_ANY_STEP = re.compile(r"(?:[A-Za-z_.-]*?[_.-])?(\d{1,12})", re.ASCII)
_UNFINISHED = "-unfinished"
_ORBAX_TMP = ".orbax-checkpoint-tmp"
_RANK = re.compile(r"(?:.*_)?mp_rank_(\d{1,6})", re.ASCII)
_ZERO = re.compile(r"(?:bf16_)?zero_pp_rank_(\d{1,6})_mp_rank_(\d{1,6})_optim_states\.pt", re.ASCII)


def step_of(kind: Format, name: str) -> int | None:
    """The step in a checkpoint's name; None for a name that is none."""
    found = _STEP_NAMES.get(kind, _ANY_STEP).fullmatch(name)
    return int(found[1]) if found else None


def newest_first(kind: Format, folder: Folder) -> tuple[str, ...]:
    """Names of what may be checkpoints in their common folder, the highest step first."""
    steps = {
        entry.name: step
        for entry in folder.entries
        if entry.kind == "folder" and (step := step_of(kind, entry.name)) is not None
    }
    return tuple(sorted(steps, key=lambda name: (-steps[name], name)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was listed around one checkpoint."""

    name: str
    inside: Folder
    beside: Folder
    """The common folder."""
    tracker: str = ""
    """Text of the format's tracker; empty where there is none."""
    marker: str = ""
    """Name of the file that makes it complete, for a format of the site's own."""


def judged(kind: Format, seen: Seen) -> Checkpoint:
    """What can be said of this checkpoint."""
    files = [entry for entry in seen.inside.entries if entry.kind == "file"]
    step = step_of(kind, seen.name)
    whole, why = (Wholeness.UNKNOWN, "its name has no step") if step is None else (None, "")
    if whole is None and seen.inside.more:
        whole, why = Wholeness.UNKNOWN, "it has more files than were listed"
    if whole is None:
        whole, why = _JUDGES[kind](seen, files, step or 0)
    at = max((entry.modified for entry in seen.inside.entries), default=None)
    return Checkpoint(name=seen.name, step=step or 0, whole=whole, why=why, at=at)


def newest_complete(found: Sequence[Checkpoint]) -> Checkpoint | None:
    """The one from which a restart can go on."""
    whole = [one for one in found if one.whole is Wholeness.COMPLETE]
    return max(whole, key=lambda one: one.step, default=None)


_Verdict = tuple[Wholeness, str]


def _empty(files: Sequence[FolderEntry]) -> str:
    """A file without content, which was opened and not written."""
    return next((file.name for file in files if file.size == 0), "")


def _dcp(_seen: Seen, files: Sequence[FolderEntry], _step: int) -> _Verdict:
    """On overwrite the old `.metadata` stays while shards are written: it must be the newest."""
    metadata = next((file for file in files if file.name == ".metadata"), None)
    shards = [file for file in files if file.name.endswith(".distcp")]
    if metadata is None or not shards:
        return Wholeness.INCOMPLETE, "no .metadata" if metadata is None else "no shard"
    if _empty([metadata, *shards]):
        return Wholeness.INCOMPLETE, f"{_empty([metadata, *shards])} is empty"
    late = [shard.name for shard in shards if shard.modified > metadata.modified]
    if late:
        return Wholeness.INCOMPLETE, f"{late[0]} is newer than .metadata"
    return Wholeness.COMPLETE, f".metadata is newer than all {len(shards)} shards"


def _megatron(seen: Seen, files: Sequence[FolderEntry], step: int) -> _Verdict:
    """The tracker is written last; the iteration's own files are looked at all the same."""
    told = seen.tracker.strip()
    if not told.isascii() or not told.isdigit():
        return Wholeness.UNKNOWN, "its tracker names no iteration"
    if step > int(told):
        return Wholeness.INCOMPLETE, f"the tracker still names iteration {int(told)}"
    if any(file.name.endswith(".distcp") for file in files):
        return _dcp(seen, files, step)
    ranks = _ranks(entry.name for entry in seen.inside.entries)
    return _all_ranks(ranks, files, f"the tracker names iteration {int(told)}")


def _deepspeed(seen: Seen, files: Sequence[FolderEntry], step: int) -> _Verdict:
    """`latest` is written last; every rank has its files."""
    told = step_of(Format.DEEPSPEED, seen.tracker.strip())
    if told is None:
        return Wholeness.UNKNOWN, "`latest` names no checkpoint"
    if step > told:
        return Wholeness.INCOMPLETE, f"`latest` still names step {told}"
    zero = {int(found[1]) for file in files if (found := _ZERO.fullmatch(file.name))}
    if zero and zero != set(range(max(zero) + 1)):
        return Wholeness.INCOMPLETE, "optimizer states of a rank are missing"
    models = (
        file.name.removesuffix("_model_states.pt") for file in files if "model_states" in file.name
    )
    return _all_ranks(_ranks(models), files, f"`latest` names step {told}")


def _ranks(names: Iterable[str]) -> set[int]:
    return {int(found[1]) for name in names if (found := _RANK.match(name))}


def _all_ranks(ranks: set[int], files: Sequence[FolderEntry], why: str) -> _Verdict:
    if not ranks:
        return Wholeness.UNKNOWN, "it has no files of ranks"
    if ranks != set(range(max(ranks) + 1)):
        return Wholeness.INCOMPLETE, "files of a rank are missing"
    if _empty(files):
        return Wholeness.INCOMPLETE, f"{_empty(files)} is empty"
    return Wholeness.COMPLETE, f"{why}, {len(ranks)} ranks are there"


def _nemo(seen: Seen, files: Sequence[FolderEntry], _step: int) -> _Verdict:
    """A name or a file beside it carries `-unfinished` while it is written."""
    beside = {entry.name for entry in seen.beside.entries}
    if _UNFINISHED in seen.name or f"{seen.name}{_UNFINISHED}" in beside:
        return Wholeness.INCOMPLETE, "it is marked -unfinished"
    if seen.beside.more or not seen.inside.entries:
        return Wholeness.UNKNOWN, "not all that lies beside it was listed"
    if _empty(files):
        return Wholeness.INCOMPLETE, f"{_empty(files)} is empty"
    return Wholeness.COMPLETE, "it is not marked -unfinished"


def _orbax(seen: Seen, files: Sequence[FolderEntry], _step: int) -> _Verdict:
    """Renamed when it is whole; where nothing is renamed, a file says so."""
    if _ORBAX_TMP in seen.name:
        return Wholeness.INCOMPLETE, "it still has its temporary name"
    if any(file.name == "commit_success.txt" for file in files):
        return Wholeness.COMPLETE, "commit_success.txt is there"
    if any(_ORBAX_TMP in entry.name for entry in seen.inside.entries):
        return Wholeness.INCOMPLETE, "a part of it still has its temporary name"
    if any(entry.name == "_CHECKPOINT_METADATA" for entry in seen.inside.entries):
        return Wholeness.COMPLETE, "it was renamed and has its metadata"
    return Wholeness.UNKNOWN, "neither commit_success.txt nor metadata"


def _hf(_seen: Seen, files: Sequence[FolderEntry], _step: int) -> _Verdict:
    """`trainer_state.json` is written after the model; the random state of each rank after that."""
    names = {file.name for file in files}
    models = [name for name in names if name.endswith((".safetensors", ".bin"))]
    if "trainer_state.json" not in names:
        return Wholeness.INCOMPLETE, "no trainer_state.json"
    if not models:
        return Wholeness.UNKNOWN, "no model file of a kind that is known"
    if _empty(files):
        return Wholeness.INCOMPLETE, f"{_empty(files)} is empty"
    return Wholeness.COMPLETE, "trainer_state.json and the model are there"


def _marked(seen: Seen, files: Sequence[FolderEntry], _step: int) -> _Verdict:
    if not seen.marker:
        return Wholeness.UNKNOWN, "the site names no marker"
    if any(file.name == seen.marker for file in files):
        return Wholeness.COMPLETE, f"{seen.marker} is there"
    return Wholeness.INCOMPLETE, f"no {seen.marker}"


_JUDGES = {
    Format.DCP: _dcp,
    Format.MEGATRON: _megatron,
    Format.DEEPSPEED: _deepspeed,
    Format.NEMO: _nemo,
    Format.ORBAX: _orbax,
    Format.HF: _hf,
    Format.MARKER: _marked,
}
