"""A node's state as a shape and a letter, so that nobody needs to see colours. Values in, values out."""

from collections.abc import Iterable
from dataclasses import dataclass

from bot.sandbox.playground import NodeView


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """How one state looks."""

    shape: str
    letter: str
    means: str

    @property
    def text(self) -> str:
        """Shape and letter."""
        return f"{self.shape}{self.letter}"


DOWN = Mark(shape="✖", letter="X", means="down")
SILENT = Mark(shape="?", letter="N", means="not responding")
INVALID = Mark(shape="▲", letter="V", means="fewer GPUs than configured")
DRAINED = Mark(shape="◇", letter="D", means="drained")
DRAINING = Mark(shape="◆", letter="W", means="drained, work still on it")
RESERVED = Mark(shape="▤", letter="R", means="reserved")
BUSY = Mark(shape="■", letter="B", means="busy")
IDLE = Mark(shape="□", letter="I", means="idle")
UNKNOWN = Mark(shape="…", letter="U", means="unknown")
MARKS = (IDLE, BUSY, DRAINING, DRAINED, RESERVED, INVALID, SILENT, DOWN, UNKNOWN)


def mark(node: NodeView) -> Mark:
    """The worst thing that is true of the node."""
    base, flags = node.words[0], frozenset(node.words[1:])
    busy = base in {"ALLOCATED", "MIXED"} or "COMPLETING" in flags
    for applies, found in (
        (base in {"DOWN", "ERROR", "FAIL"} or "FAIL" in flags, DOWN),
        ("NOT_RESPONDING" in flags, SILENT),
        ("INVALID_REG" in flags, INVALID),
        ("DRAIN" in flags, DRAINING if busy else DRAINED),
        (bool(flags & {"RESERVED", "MAINTENANCE"}), RESERVED),
        (busy, BUSY),
        (base == "IDLE", IDLE),
    ):
        if applies:
            return found
    return UNKNOWN


def legend(nodes: Iterable[NodeView]) -> str:
    """The marks that these nodes show, with their meaning."""
    shown = {mark(node) for node in nodes}
    return "  ".join(f"{each.text} {each.means}" for each in MARKS if each in shown)


def short(name: str) -> str:
    """The number of a node, which is what differs in a grid."""
    return name.rpartition("-")[2]
