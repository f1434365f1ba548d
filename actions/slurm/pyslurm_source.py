"""Reads a cluster through the library pyslurm, inside the snapshot child and nowhere else.

`import pyslurm` ends the whole process where no slurm.conf is found (measured), it loads Slurm's own
library, and that library's calls hold the interpreter: so this module is imported by
`actions.slurm.snapshot_child` alone. Only the attributes that are needed are read, one by one.
"""

import importlib
import importlib.util
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any, TypeVar

from actions.cluster import Job, Node, Partition, Reservation
from actions.contract import Unreadable
from actions.slurm.fields import JsonObject, UnknownForm
from actions.slurm.pyslurm_values import (
    JOB_ATTRIBUTES,
    NODE_ATTRIBUTES,
    PARTITION_ATTRIBUTES,
    RESERVATION_ATTRIBUTES,
    jobs_from_records,
    nodes_from_records,
    partitions_from_records,
    reservations_from_records,
)
from actions.slurm.tools import SlurmSettings
from config.node_names import NodeName

LIBRARY = "pyslurm"
_PLAIN = frozenset({str, int, float, bool, type(None)})
_RELEASE = re.compile(r"(\d+)\.(\d+)", re.ASCII)
_Values = TypeVar("_Values")


def installed() -> bool:
    """Whether the library could be imported here, without importing it."""
    return importlib.util.find_spec(LIBRARY) is not None


class PyslurmSource:
    """Questions to the controller through the library."""

    def __init__(self, settings: SlurmSettings, controller_version: str) -> None:
        """Imports the library. Raises Unreadable where it is missing or of another release."""
        self._cluster = settings.cluster
        self.asked = 0
        if not installed():
            raise Unreadable(
                "pyslurm is not installed beside this program: install its extra `pyslurm` or set "
                "`backend: cli`"
            )
        os.environ["SLURM_CONF"] = settings.slurm_conf
        os.environ["TZ"] = "UTC"
        self._library: Any = importlib.import_module(LIBRARY)
        version = str(getattr(self._library, "__version__", ""))
        if _release(version) != _release(controller_version):
            raise Unreadable(
                f"pyslurm {version or 'of no known release'} does not fit the controller's "
                f"{controller_version}: install that release of it or set `backend: cli`"
            )

    def nodes(self) -> dict[NodeName, Node]:
        """All nodes; the library asks for the partitions too."""
        self.asked += 1
        return self._read(self._library.Nodes.load, NODE_ATTRIBUTES, nodes_from_records)

    def jobs(self) -> tuple[Job, ...]:
        """All jobs of every state."""
        return self._read(self._library.Jobs.load, JOB_ATTRIBUTES, jobs_from_records)

    def partitions(self) -> tuple[Partition, ...]:
        """All partitions, hidden ones too."""
        return self._read(
            self._library.Partitions.load, PARTITION_ATTRIBUTES, partitions_from_records
        )

    def reservations(self, _now: datetime) -> tuple[Reservation, ...]:
        """All reservations; the library tells which are active."""
        return self._read(
            self._library.Reservations.load, RESERVATION_ATTRIBUTES, reservations_from_records
        )

    def _read(
        self,
        load: Callable[[], Mapping[object, object]],
        attributes: tuple[str, ...],
        read: Callable[[Iterable[JsonObject]], _Values],
    ) -> _Values:
        self.asked += 1
        try:
            return read(self._records(load(), attributes))
        except UnknownForm as error:
            raise Unreadable(f"pyslurm's answer cannot be read: {error}") from error
        except Unreadable:
            raise
        except Exception as error:  # the library raises its own kinds, which are not known here
            raise Unreadable(f"pyslurm: {type(error).__name__}: {error}") from error

    def _records(
        self, found: Mapping[object, object], attributes: tuple[str, ...]
    ) -> Iterator[JsonObject]:
        all_of = attrgetter(*attributes)
        for one in found.values():
            try:
                values = all_of(one)  # 50,000 jobs have two million of them
            except UnicodeDecodeError:
                values = tuple(_attribute(one, name) for name in attributes)
            record = {
                name: value if type(value) in _PLAIN else _plain(value)
                for name, value in zip(attributes, values, strict=True)
            }
            if record["cluster"] != self._cluster:
                raise Unreadable(
                    f"pyslurm answers of cluster {record['cluster']}, not {self._cluster}"
                )
            yield record


def _attribute(one: object, name: str) -> object:
    """One attribute; bytes that are not UTF-8 survive as they do everywhere else."""
    try:
        return getattr(one, name)
    except UnicodeDecodeError as error:
        return bytes(error.object).decode("utf-8", errors="backslashreplace")


def _plain(value: object) -> object:
    """A value of no plain kind, as text, list or mapping; counted resources as Slurm's names of them."""
    if not value and type(value) in {list, dict}:
        return value
    if isinstance(value, Mapping):
        return {str(name): _count(content) for name, content in value.items()}
    if isinstance(value, list | tuple):
        return [item if isinstance(item, str) else str(item) for item in value]
    gres = getattr(value, "gres", None)
    if isinstance(gres, Mapping):
        return {f"gres/{name}": _count(content) for name, content in gres.items()}
    return str(value)


def _count(value: object) -> object:
    """A count, which some releases wrap with the kind that is counted."""
    return value if type(value) in _PLAIN or isinstance(value, list) else getattr(value, "count", 0)


def _release(version: str) -> tuple[str, ...]:
    found = _RELEASE.match(version)
    return found.groups() if found else ()
