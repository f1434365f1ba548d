"""Files of training jobs on the shared file system of the simulation, and what a node's program says.

Called by `stage` for the readings of `actions.node_readings`; changes nothing.
"""

import fnmatch
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from actions.contract import Refusal, Unreadable
from actions.node_readings import (
    FileTail,
    Folder,
    FolderEntry,
    PortAnswer,
    PortTried,
    StackedThread,
)
from actions.remote_values import CommandResult, Reach
from actions.simulated import host_rules
from actions.simulated.lookups import host_named, unit_name
from actions.simulated.machines import Host
from actions.simulated.state import JobRecord, State
from actions.simulated.training import Checkpoint, Training
from config.job_settings import CheckpointFormat
from config.node_names import NodeName

MOST_ENTRIES = 500
_SHARD = 1 << 30
_LOG_LINES = 50


@dataclass(frozen=True, slots=True)
class _File:
    """One file: text where it can be read, otherwise only a size."""

    path: str
    modified: datetime
    text: str = ""
    bytes: int = 0

    @property
    def size(self) -> int:
        """In bytes."""
        return self.bytes or len(self.text.encode())


def tail(state: State, node: NodeName, user: str, path: str, most: int) -> FileTail:
    """The end of a file, read as this user. Raises Refusal, Unreadable, UnknownNode."""
    _readable(state, node)
    for file in _files(state, user):
        if file.path == path:
            text = file.text[-most:]
            return FileTail(
                size=file.size,
                modified=file.modified,
                offset=file.size - len(text.encode()),
                text=text,
            )
    raise Unreadable(f"{path}: No such file or directory, or not {user}'s")


def listed(state: State, node: NodeName, user: str, folder: str, pattern: str) -> Folder:
    """Entries of one folder whose names fit. Raises Refusal, Unreadable, UnknownNode."""
    _readable(state, node)
    entries: dict[str, FolderEntry] = {}
    there = False
    for file in _files(state, user):
        rest = posixpath.relpath(file.path, folder)
        if rest.startswith(".."):
            continue
        there = True
        name, _, below = rest.partition("/")
        kind, size = ("folder", 4096) if below else ("file", file.size)
        if fnmatch.fnmatchcase(name, pattern):
            entries[name] = FolderEntry(name=name, kind=kind, size=size, modified=file.modified)
    if not there:
        raise Unreadable(f"{folder}: No such file or directory, or not {user}'s")
    found = tuple(entries[name] for name in sorted(entries))
    return Folder(real=folder, entries=found[:MOST_ENTRIES], more=len(found) > MOST_ENTRIES)


def stacks(state: State, node: NodeName, job: int) -> tuple[StackedThread, ...]:
    """Where the ranks of the job stand on this host. Raises Refusal, Unreadable, UnknownNode."""
    host = _answering(state, node)
    if job not in host.ranks:
        return ()
    letter, channel, stack = (
        ("D", "folio_wait_bit_common", ("folio_wait_bit_common", "vfs_write"))
        if host.steps_stuck
        else ("T", "do_signal_stop", ())
        if host.ranks_stopped
        else ("S", "futex_wait_queue", ("futex_wait_queue", "do_futex"))
    )
    return tuple(
        StackedThread(
            pid=10_000 + rank,
            name="python",
            state=letter,
            wait_channel=channel,
            stack=stack,
            command="python train.py",
        )
        for rank in range(8)
    )


def unit_log(state: State, node: NodeName, unit: str, lines: int) -> CommandResult:
    """The last lines of a unit's journal. Raises Refusal, Unreadable, UnknownNode."""
    host = _answering(state, node)
    found = host.units.get(unit_name(unit))
    if found is None:
        raise Refusal(f"unit {unit!a} is not in the list of {node}")
    said = f"{found.since:%b %d %H:%M:%S} {node} systemd[1]: {found.name}: {found.state.value}"
    log = [said, *([found.detail] if found.detail else [])]
    return CommandResult(exit_code=0, output="\n".join(log[-lines:]) + "\n")


def tcp_try(
    state: State, node: NodeName, host: str, ports: tuple[int, ...]
) -> tuple[PortTried, ...]:
    """Whether another host answers that node. Raises Refusal, Unreadable, UnknownNode."""
    _answering(state, node)
    other = state.hosts.get(NodeName(host))
    if other is None:
        raise Refusal(f"host {host!a} is not in the list of {node}")
    answers = other.powered and other.connected
    said = PortAnswer.OPEN if answers else PortAnswer.SILENT
    why = "connected" if answers else "no answer within 3 s"
    return tuple(PortTried(port=port, answer=said, evidence=why) for port in ports)


def _answering(state: State, node: NodeName) -> Host:
    host = host_named(state, node)
    met = host_rules.reach(host)
    if met is not Reach.ALIVE:
        raise Unreadable(f"{node} gives no answer: {met.value}")
    return host


def _readable(state: State, node: NodeName) -> None:
    if _answering(state, node).steps_stuck:
        raise Unreadable(f"{node}: the reading is stuck, its file system does not answer")


def _files(state: State, user: str) -> Iterator[_File]:
    """Everything that this user's training jobs have written."""
    for number, training in state.trainings.items():
        job = state.jobs.get(number)
        if job is None or job.user != user:
            continue
        if job.stdout:
            yield _log(state, job, training)
        for made in training.checkpoints:
            yield from _checkpoint(state, training, made)
        yield from _tracker(state, training)


def _log(state: State, job: JobRecord, training: Training) -> _File:
    """Rank 0 alone writes, one line a step, as Megatron writes it."""
    last = training.step
    first = max(1, last - _LOG_LINES + 1)
    lines = [
        f" iteration {step:8}/ 1000000 | consumed samples: {step * 512:12} | elapsed time per "
        f"iteration (ms): {training.step_takes.total_seconds() * 1000:.1f} | lm loss: 2.1E+00 |\n"
        for step in range(first, last + 1)
    ]
    return _File(job.stdout, training.moved_at or state.now, "".join(lines))


def _checkpoint(state: State, training: Training, made: Checkpoint) -> Iterator[_File]:
    """The files of one checkpoint; what makes it whole is there only when it is."""
    whole = made.complete(state.now)
    name, shard, mark = _names(training, made.step, whole)
    folder = f"{training.folder}/{name}"
    for rank in range(2):
        yield _File(f"{folder}/{shard.format(rank=rank)}", made.at, bytes=_SHARD)
    if whole and mark:
        yield _File(f"{folder}/{mark}", made.done_at, "{}\n")


def _names(training: Training, step: int, whole: bool) -> tuple[str, str, str]:
    """Folder, shards, and the file that tells that it is whole (empty where the name tells it)."""
    match training.format:
        case CheckpointFormat.DCP:
            return f"step-{step}", "__{rank}_0.distcp", ".metadata"
        case CheckpointFormat.MEGATRON:
            return f"iter_{step:07}", "mp_rank_{rank:02}_model_optim_rng.pt", ""
        case CheckpointFormat.DEEPSPEED:
            return f"global_step{step}", "mp_rank_{rank:02}_model_states.pt", ""
        case CheckpointFormat.NEMO:
            return f"step={step}{'' if whole else '-unfinished'}", "model_{rank}.ckpt", ""
        case CheckpointFormat.ORBAX:
            tail = "" if whole else ".orbax-checkpoint-tmp-1"
            return f"{step}{tail}", "d_{rank}", "commit_success.txt"
        case CheckpointFormat.HF:
            return f"checkpoint-{step}", "model-{rank}.safetensors", "trainer_state.json"
        case CheckpointFormat.MARKER:
            return f"step-{step}", "shard-{rank}.bin", training.marker or "DONE"


def _tracker(state: State, training: Training) -> Iterator[_File]:
    """The file that names the newest whole checkpoint, where the format has one."""
    whole = [made for made in training.checkpoints if made.complete(state.now)]
    if not whole:
        return
    newest = max(whole, key=lambda made: made.step)
    if training.format is CheckpointFormat.MEGATRON:
        path, text = "latest_checkpointed_iteration.txt", f"{newest.step}"
    elif training.format is CheckpointFormat.DEEPSPEED:
        path, text = "latest", f"global_step{newest.step}"
    else:
        return
    yield _File(f"{training.folder}/{path}", newest.done_at, text)
