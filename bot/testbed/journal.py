"""The journal that all ranks of a training job write, read back. Pure.

It is how a test sees two writers: an old rank that nobody ended and its successor. What the job
itself shows (log, checkpoint, Slurm's state) looks sound in that case.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

_LINE = re.compile(r"^(\d+\.\d+) (\S+) (\d+) (\d+) (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One write of one rank."""

    time: float
    host: str
    rank: int
    restart: int
    step: int
    """The last step that it has done; a waiting rank repeats it each second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoWriters:
    """A second in which ranks of more than one start of the job wrote."""

    second: int
    hosts: tuple[tuple[int, str], ...]
    """Restart number and host of each writer."""


def entries(text: str) -> tuple[Entry, ...]:
    """All whole lines; the last may still be written."""
    return tuple(
        Entry(time=float(time), host=host, rank=int(rank), restart=int(restart), step=int(step))
        for time, host, rank, restart, step in _LINE.findall(text)
    )


def two_writers(found: Iterable[Entry], since: float = 0.0) -> tuple[TwoWriters, ...]:
    """Every second from `since` on in which two restart numbers wrote, in order."""
    seconds: defaultdict[int, set[tuple[int, str]]] = defaultdict(set)
    for entry in found:
        if entry.time >= since:
            seconds[int(entry.time)].add((entry.restart, entry.host))
    return tuple(
        TwoWriters(second=second, hosts=tuple(sorted(writers)))
        for second, writers in sorted(seconds.items())
        if len({restart for restart, _ in writers}) > 1
    )
