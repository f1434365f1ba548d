"""Makes one `Snapshot` of the lines that the snapshot child printed. Pure.

Called by `actions.slurm.cli`. An answer without its last line is no answer.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from actions.cluster import Controller, Job, Node, Partition, Reservation, Snapshot
from actions.contract import Unreadable
from actions.slurm.wire import from_packed
from config.ids import ClusterName

_SHOWN = 80
_KINDS = {
    "controller": Controller,
    "node": Node,
    "job": Job,
    "partition": Partition,
    "reservation": Reservation,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """The snapshot, and what the child learned on the way."""

    snapshot: Snapshot
    asked: int
    """Questions that the controller answered for it."""
    without_json: tuple[str, ...]
    overload: str
    """What the controller had too much of; empty where nothing is known of it."""
    why_not_pyslurm: str
    """Why the tools were asked although pyslurm was to be tried; empty where it was not, or worked."""


def received_snapshot(lines: str, cluster: ClusterName, taken_at: datetime) -> Received:
    """Read all lines. Raises Unreadable with the child's words, or when the end is missing."""
    try:
        return _received(lines, cluster, taken_at)
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        raise Unreadable(f"no snapshot: the child's answer cannot be read: {error!r}") from error


def _received(lines: str, cluster: ClusterName, taken_at: datetime) -> Received:
    values: dict[str, list[Any]] = {kind: [] for kind in _KINDS}
    end: Mapping[str, Any] | None = None
    for line in _lines(lines):
        kind, content = _told(line)
        if kind == "unreadable":
            raise Unreadable(content)
        if kind == "end":
            end = content
        else:
            values[kind].append(from_packed(_KINDS[kind], content))
    if end is None or len(values["controller"]) != 1:
        raise Unreadable("no snapshot: the child's answer breaks off")
    controller = values["controller"][0]
    if controller.cluster != cluster:
        raise Unreadable(f"no snapshot: the answer is of cluster {controller.cluster}")
    return Received(
        snapshot=Snapshot(
            cluster=cluster,
            taken_at=taken_at,
            controller=controller,
            nodes={node.name: node for node in values["node"]},
            jobs=tuple(values["job"]),
            partitions=tuple(values["partition"]),
            reservations=tuple(values["reservation"]),
            blind=tuple(end["blind"]),
        ),
        asked=end["asked"],
        without_json=tuple(end["without_json"]),
        overload=end["overload"],
        why_not_pyslurm=end["why_not_pyslurm"],
    )


def _told(line: str) -> tuple[str, Any]:
    """What one line says. Raises Unreadable for a line that is none of ours."""
    try:
        kind, content = json.loads(line)
    except (ValueError, TypeError):
        kind, content = "", None
    if not isinstance(kind, str) or kind not in {*_KINDS, "unreadable", "end"}:
        raise Unreadable(f"no snapshot: the child printed {line[:_SHOWN]!r}")
    return kind, content


def _lines(text: str) -> Iterator[str]:
    """One line after the other: to split 20 MB at once would stop every other thread."""
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end + 1
