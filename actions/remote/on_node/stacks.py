"""Where processes of a job stand: state, wait channel and kernel stack, from /proc alone.

Nothing is attached to, stopped or signalled: what hangs in D state must be readable too. What a job
is, its processes' environment and cgroups say; both are written by Slurm as root or inherited.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from actions.remote.on_node.answers import Answer, plain
from actions.remote.on_node.words import Refused, number

_MOST_PROCESSES = 256
_MOST_THREADS = 64
_MOST_SEEN = 20_000
_LARGEST = 4096
_LARGEST_ENVIRONMENT = 1 << 17
_HIGHEST = 999_999_999

if TYPE_CHECKING:
    Json = dict[str, object]


def stacks(word: str) -> Answer:
    """`pid:123`, or `job:123` for every process of that Slurm job on this node."""
    kind, colon, rest = word.partition(":")
    if not colon or kind not in {"pid", "job"}:
        raise Refused(f"{word[:60]!a} is neither pid:NUMBER nor job:NUMBER")
    wanted = number(rest, _HIGHEST)
    found = list(_of_job(wanted)) if kind == "job" else [wanted]
    shown = [one for one in map(_process, found[:_MOST_PROCESSES]) if one]
    return plain({"processes": shown, "more": max(0, len(found) - _MOST_PROCESSES)})


def _of_job(job: int) -> Iterator[int]:
    """Processes that Slurm started for the job, by their cgroup, or by the environment they began with."""
    group, variable = f"/job_{job}/".encode(), f"SLURM_JOB_ID={job}".encode()
    numbers = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
    for pid in numbers[:_MOST_SEEN]:
        groups = _bytes(f"/proc/{pid}/cgroup")
        environment = _bytes(f"/proc/{pid}/environ", _LARGEST_ENVIRONMENT)
        if group in groups.replace(b"\n", b"/\n") or variable in environment.split(b"\0"):
            yield pid


def _process(pid: int) -> Json | None:
    stat = _stat(f"/proc/{pid}")
    if stat is None:
        return None
    command = _bytes(f"/proc/{pid}/cmdline").replace(b"\0", b" ")
    return {
        "pid": pid,
        "command": _text(command)[:512],
        "uid": os.stat(f"/proc/{pid}").st_uid if os.path.exists(f"/proc/{pid}") else -1,
        **stat,
        "threads": _threads(pid),
    }


def _threads(pid: int) -> list[Json]:
    """Threads in uninterruptible sleep beside the first one: there the ranks of a job hang."""
    try:
        threads = sorted(int(name) for name in os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return []
    found: list[Json] = []
    for thread in threads:
        stat = _stat(f"/proc/{pid}/task/{thread}") if thread != pid else None
        if stat is not None and stat["state"] == "D" and len(found) < _MOST_THREADS:
            found.append({"tid": thread, **stat})
    return found


def _stat(folder: str) -> Json | None:
    line = _bytes(f"{folder}/stat")
    if b")" not in line:
        return None
    name, _, rest = line.partition(b"(")[2].rpartition(b")")
    return {
        "name": _text(name),
        "state": _text(rest.split()[0]),
        "wait_channel": _text(_bytes(f"{folder}/wchan")),
        "stack": _text(_bytes(f"{folder}/stack")).splitlines()[:32],
    }


def _bytes(path: str, most: int = _LARGEST) -> bytes:
    """Beginning of a file of /proc; empty where it is gone or closed to us."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, most)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace").strip()
