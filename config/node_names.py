"""Node names and sets of them, checked before anything else sees the text.

A node expression comes from a person, an alert or a file. It is matched against a strict
pattern, its size is computed without expanding it, and only then does ClusterShell see it:
its group upcalls would run a shell, `*` would mean every node (measured, design 7).
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NewType

# ClusterShell reads group files and upcalls from its configuration folder at import; ours is empty.
os.environ["CLUSTERSHELL_CFGDIR"] = str(Path(__file__).parent / "clustershell")

from ClusterShell.NodeSet import RESOLVER_NOGROUP  # the folder must be set first
from ClusterShell.NodeSet import NodeSet as _ClusterShellSet

NodeName = NewType("NodeName", str)

LARGEST_SET = 20_000
"""More names than this in one expression are refused (design 7)."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_RANGES = r"\[\d{1,9}(?:-\d{1,9})?(?:,\d{1,9}(?:-\d{1,9})?)*\]"
_ITEM = re.compile(rf"[A-Za-z0-9](?:[A-Za-z0-9._-]|{_RANGES})*", re.ASCII)
_BRACKETS = re.compile(r"\[([^\]]*)\]")
_SHOWN = 40
_REMEMBERED = 64
"""Longest list of names whose folded form is kept."""
_SHAPE = "names are written gpu-001, gpu-[01-04,07] or gpu-001,gpu-007"


class NodeNameError(ValueError):
    """A node expression that is not acceptable; the message says where and what to do."""


@dataclass(frozen=True, slots=True)
class NodeSet:
    """An ordered set of node names, in natural order."""

    names: tuple[NodeName, ...] = ()

    @classmethod
    def of(cls, names: Iterable[str]) -> "NodeSet":
        """The set of these names, each checked."""
        return cls(tuple(sorted({node_name(name) for name in names}, key=_natural)))

    def __iter__(self) -> Iterator[NodeName]:
        """Names in natural order."""
        return iter(self.names)

    def __len__(self) -> int:
        """How many names."""
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        """Whether this name is in the set."""
        return name in self.names

    def __str__(self) -> str:
        """Folded as Slurm writes it: `gpu-[01-04,07]`."""
        return fold(self.names)


def node_name(text: str) -> NodeName:
    """One plain node name, without ranges. Raises NodeNameError."""
    if not _NAME.fullmatch(text) or len(text) > 255:  # longest host name, RFC 1035
        raise NodeNameError(f"{_shown(text)} is not a node name: {_why_not(text)}")
    return NodeName(text)


def expand(expression: str, inventory: Collection[str]) -> NodeSet:
    """The nodes that `expression` names, each of which must be in `inventory`.

    Raises NodeNameError when the text is malformed, empty, too large, or names an unknown node.
    """
    names = expand_unchecked(expression)
    known = frozenset(inventory)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise NodeNameError(
            f"unknown node{'s' if len(unknown) > 1 else ''} {fold(unknown[:_SHOWN])}"
            f"{' and more' if len(unknown) > _SHOWN else ''} in {_shown(expression)}: "
            "nothing was done for any node; see `status` for the names the cluster has"
        )
    return names


def expand_unchecked(expression: str) -> NodeSet:
    """Like `expand`, before any inventory is known (scopes in a configuration file)."""
    text = expression.strip(" ")
    if not text:
        raise NodeNameError(
            f"no node named: an empty node set is never taken to mean all nodes; {_SHAPE}"
        )
    items = _split(text)
    for item in items:
        if not _ITEM.fullmatch(item):
            raise NodeNameError(f"{_shown(text)} is not a node expression: {_why_not(item)}")
    size = sum(_size(item) for item in items)
    if size > LARGEST_SET:
        raise NodeNameError(
            f"{_shown(text)} would name {size:,} nodes; at most {LARGEST_SET:,} are accepted: "
            "name fewer"
        )
    return NodeSet.of(_ClusterShellSet(",".join(items), resolver=RESOLVER_NOGROUP))


def fold(names: Iterable[str]) -> str:
    """Names folded as Slurm writes them; the empty string for none."""
    listed = tuple(names)
    return _few_folded(listed) if len(listed) <= _REMEMBERED else _folded(listed)


def _folded(names: tuple[str, ...]) -> str:
    return str(_ClusterShellSet.fromlist(list(names), resolver=RESOLVER_NOGROUP))


_few_folded = lru_cache(maxsize=1024)(_folded)
"""Lists and cards name the same few nodes again and again, ClusterShell takes 0.13 ms for ten."""


def _split(text: str) -> list[str]:
    """Items at commas outside brackets."""
    return re.split(r",(?![^\[]*\])", text)


def _size(item: str) -> int:
    """How many names one item stands for, without making them. Raises NodeNameError."""
    size = 1
    for body in _BRACKETS.findall(item):
        count = 0
        for part in body.split(","):
            low, _, high = part.partition("-")
            span = int(high or low) - int(low) + 1
            if span < 1:
                raise NodeNameError(
                    f"{_shown(item)}: the range {part} runs backwards: "
                    "the lower number stands first"
                )
            count += span
        size *= count
    return size


def _natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key in which gpu-2 comes before gpu-10."""
    parts = re.split(r"(\d+)", name)
    return tuple((1, int(part), part) if part.isdigit() else (0, 0, part) for part in parts)


def _why_not(item: str) -> str:
    """The first character that is wrong, named so that an invisible one is seen."""
    if not item:
        return f"a name is empty; {_SHAPE}"
    for position, character in enumerate(item):
        if not re.fullmatch(r"[A-Za-z0-9._\[\],-]", character, re.ASCII):
            return (
                f"{_named(character)} at position {position + 1} cannot be in a node name; {_SHAPE}"
            )
    if item[0] in "-._[,":
        return f"a name cannot begin with {item[0]!r}; {_SHAPE}"
    return f"ranges are not like that; {_SHAPE}"


def _named(character: str) -> str:
    """A character in a form that a terminal cannot misread."""
    return repr(character) if " " < character < "\x7f" else f"U+{ord(character):04X}"


def _shown(text: str) -> str:
    """Text from outside, shortened and escaped for a message."""
    escaped = text.encode("unicode_escape").decode("ascii")
    return f"'{escaped[:_SHOWN]}{'…' if len(escaped) > _SHOWN else ''}'"
