"""Further looks on nodes, past what an ordinary user sees there: their contract and their values. Pure.

A page of `actions.contract` by itself. Implemented by `actions.remote` (through the program that an admin
installs on the nodes) and by `actions.simulated`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from actions.remote_values import CommandResult
from config.node_names import NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTail:
    """The end of a user's file, read as that user. The text is from outside."""

    size: int
    modified: datetime
    offset: int
    """Bytes of the file that lie before the text."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderEntry:
    """One name in a user's folder. The name is from outside."""

    name: str
    kind: str
    """`file`, `folder`, `link` or `other`."""
    size: int
    modified: datetime
    leads_to: str = ""
    """Of a link: what is written in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """Entries of one folder whose names fit a pattern, sorted by name."""

    real: str
    """Where it is once every link is followed."""
    entries: tuple[FolderEntry, ...]
    more: bool = False
    """There are more than were listed: absence of a name proves nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackedThread:
    """Where one process, or a thread of it in D state, stands."""

    pid: int
    """Of a thread: its own number."""
    name: str
    state: str
    """One letter as in ps: `D` cannot be ended."""
    wait_channel: str
    stack: tuple[str, ...] = ()
    """Kernel functions, the innermost first."""
    command: str = ""


class PortAnswer(StrEnum):
    """What a TCP port of another host answered to a node."""

    OPEN = "open"
    REFUSED = "refused"
    """Something lives there."""
    SILENT = "silent"
    NO_ROUTE = "no_route"


@dataclass(frozen=True, slots=True, kw_only=True)
class PortTried:
    """One port, tried by a node."""

    port: int
    answer: PortAnswer
    evidence: str


class NodeReadings(Protocol):
    """Further looks on nodes, past what an ordinary user sees; the same object as the NodeHands.

    Every method raises Refusal where the node does not allow it (a path outside its roots, a unit or a
    host that is not listed, no helper) and Unreadable when there is no answer. What users wrote is read
    as that user, and whoever calls `file_tail`, `file_list` or `stacks` records it like an effect: whose
    data, on which node, for which run (hands 4).
    """

    def file_tail(self, node: NodeName, user: str, path: str, most: int) -> FileTail:
        """The last `most` bytes (up to 128 KiB) of a file, read as this user."""
        ...

    def file_list(self, node: NodeName, user: str, folder: str, pattern: str) -> Folder:
        """Entries of one folder whose names fit `pattern` (`*`, `?`, `[…]`), read as this user."""
        ...

    def stacks(self, node: NodeName, job: int) -> tuple[StackedThread, ...]:
        """Where the processes of this Slurm job stand on this node."""
        ...

    def unit_log(self, node: NodeName, unit: str, lines: int) -> CommandResult:
        """The last lines of a unit's journal."""
        ...

    def tcp_try(self, node: NodeName, host: str, ports: Sequence[int]) -> tuple[PortTried, ...]:
        """Whether another host answers that node on up to four TCP ports."""
        ...
