"""Takes one whole snapshot in a process of its own and prints it as lines of our values.

Run by `actions.slurm.cli` as `python -m actions.slurm.snapshot_child`: 50,000 jobs are hundreds of
megabytes of JSON, which must neither hold the bot's interpreter nor its memory, and `import pyslurm`
ends the process in which it fails (design 7). Reads settings as JSON on standard input. Changes
nothing, keeps nothing.
"""

import gc
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol, TextIO

from actions.cluster import Job, Node, Partition, Reservation
from actions.contract import Unreadable
from actions.shell import Runner
from actions.slurm.pyslurm_source import PyslurmSource
from actions.slurm.sight import blindness
from actions.slurm.tools import LARGE, Runs, SlurmSettings, Tools
from actions.slurm.wire import to_line
from config.clock import from_microseconds
from config.ids import ClusterName
from config.node_names import NodeName

CLI, AUTO = "cli", "auto"


def print_snapshot(asked: str, runner: Runs, out: TextIO) -> None:
    """Answer one request (see `request`) with lines, the last of which is `["end", ...]`."""
    wanted = json.loads(asked)
    settings = _settings(wanted)
    tools = Tools(settings, runner, wanted["without_json"], LARGE)
    try:
        _print(tools, settings, from_microseconds(wanted["at_us"]), out)
    except Unreadable as error:
        out.write(json.dumps(["unreadable", str(error)]) + "\n")


def request(settings: SlurmSettings, without_json: tuple[str, ...], at_us: int) -> bytes:
    """What the child reads."""
    wanted = {
        "cluster": settings.cluster,
        "slurm_conf": settings.slurm_conf,
        "path": settings.path,
        "own_user": settings.own_user,
        "backend": settings.backend,
        "read_limit_s": settings.read_limit // timedelta(seconds=1),
        "without_json": without_json,
        "at_us": at_us,
    }
    return json.dumps(wanted).encode()


def _settings(wanted: dict[str, str]) -> SlurmSettings:
    return SlurmSettings(
        cluster=ClusterName(wanted["cluster"]),
        slurm_conf=wanted["slurm_conf"],
        path=wanted["path"],
        own_user=wanted["own_user"],
        backend=wanted["backend"],
        read_limit=timedelta(seconds=int(wanted["read_limit_s"])),
    )


def _print(tools: Tools, settings: SlurmSettings, at: datetime, out: TextIO) -> None:
    facts = tools.controller()
    seen, why_not = _seen(tools, settings, facts.controller.version, at)
    _write("controller", [facts.controller], out)
    _write("node", seen.nodes.values(), out)
    _write("job", seen.jobs, out)
    _write("partition", seen.partitions, out)
    _write("reservation", seen.reservations, out)
    blind = blindness(seen.nodes.values(), seen.jobs, facts.private_data, settings.own_user, at)
    overload = tools.overload()
    end = {
        "overload": overload,
        "blind": blind,
        "asked": tools.asked + seen.asked,
        "without_json": sorted(tools.without_json),
        "why_not_pyslurm": why_not,
    }
    out.write(json.dumps(["end", end]) + "\n")


class _Source(Protocol):
    """Either back end."""

    @property
    def asked(self) -> int:
        """Questions that it asked the controller."""
        ...

    def nodes(self) -> dict[NodeName, Node]:
        """All nodes."""
        ...

    def jobs(self) -> tuple[Job, ...]:
        """All jobs of every state."""
        ...

    def partitions(self) -> tuple[Partition, ...]:
        """All partitions, hidden ones too."""
        ...

    def reservations(self, now: datetime, /) -> tuple[Reservation, ...]:
        """All reservations."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """All of one cluster."""

    nodes: dict[NodeName, Node]
    jobs: tuple[Job, ...]
    partitions: tuple[Partition, ...]
    reservations: tuple[Reservation, ...]
    asked: int = 0
    """Questions that went another way than through the tools."""


def _seen(tools: Tools, settings: SlurmSettings, version: str, at: datetime) -> tuple[_Seen, str]:
    """The cluster by the wanted back end, and why it was not pyslurm where that was tried."""
    if settings.backend == CLI:
        return _all(tools, at), ""
    try:
        source = PyslurmSource(settings, version)
        return replace(_all(source, at), asked=source.asked), ""
    except Unreadable as error:
        if settings.backend != AUTO:
            raise
        return _all(tools, at), str(error)


def _all(source: _Source, at: datetime) -> _Seen:
    """Nodes before jobs: a job that starts in between must not look like a hidden one."""
    return _Seen(
        nodes=source.nodes(),
        jobs=source.jobs(),
        partitions=source.partitions(),
        reservations=source.reservations(at),
    )


def _write(kind: str, values: Iterable[object], out: TextIO) -> None:
    out.writelines(to_line(kind, value) + "\n" for value in values)


def main() -> None:
    """Answer what standard input asks; what a library prints by itself goes to standard error."""
    gc.disable()  # one answer and it ends, with whatever has become garbage
    with os.fdopen(os.dup(1), "w", encoding="ascii") as out:
        os.dup2(2, 1)
        print_snapshot(sys.stdin.read(), Runner(), out)


if __name__ == "__main__":
    main()
