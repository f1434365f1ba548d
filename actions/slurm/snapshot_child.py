"""Takes one whole snapshot in a process of its own and prints it as lines of our values.

Run by `actions.slurm.cli` as `python -m actions.slurm.snapshot_child`: 50,000 jobs are hundreds of
megabytes of JSON, which must neither hold the bot's interpreter nor its memory (design 7). Reads
settings as JSON on standard input. Changes nothing, keeps nothing.
"""

import json
import sys
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TextIO

from actions.contract import Unreadable
from actions.shell import Runner
from actions.slurm.sight import blindness
from actions.slurm.tools import LARGE, Runs, SlurmSettings, Tools
from actions.slurm.wire import to_line
from config.clock import from_microseconds
from config.ids import ClusterName


def print_snapshot(asked: str, runner: Runs, out: TextIO) -> None:
    """Answer one request (see `request`) with lines, the last of which is `["end", ...]`."""
    wanted = json.loads(asked)
    tools = Tools(_settings(wanted), runner, wanted["without_json"], LARGE)
    try:
        _print(tools, from_microseconds(wanted["at_us"]), wanted["own_user"], out)
    except Unreadable as error:
        out.write(json.dumps(["unreadable", str(error)]) + "\n")


def request(settings: SlurmSettings, without_json: tuple[str, ...], at_us: int) -> bytes:
    """What the child reads."""
    wanted = {
        "cluster": settings.cluster,
        "slurm_conf": settings.slurm_conf,
        "path": settings.path,
        "own_user": settings.own_user,
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
        read_limit=timedelta(seconds=int(wanted["read_limit_s"])),
    )


def _print(tools: Tools, at: datetime, own_user: str, out: TextIO) -> None:
    facts = tools.controller()
    _write("controller", [facts.controller], out)
    nodes = tools.nodes()
    _write("node", nodes.values(), out)
    jobs = tools.jobs()
    _write("job", jobs, out)
    _write("partition", tools.partitions(), out)
    _write("reservation", tools.reservations(at), out)
    blind = blindness(nodes.values(), jobs, facts.private_data, own_user, at)
    end = {"blind": blind, "asked": tools.asked, "without_json": sorted(tools.without_json)}
    out.write(json.dumps(["end", end]) + "\n")


def _write(kind: str, values: Iterable[object], out: TextIO) -> None:
    out.writelines(to_line(kind, value) + "\n" for value in values)


if __name__ == "__main__":
    print_snapshot(sys.stdin.read(), Runner(), sys.stdout)
