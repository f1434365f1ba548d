"""Takes values out of a read document and notes what has the wrong shape. Pure.

Used by the loaders of runbooks and causes. Every method answers with a usable value, so that one
reading finds all problems of a file.
"""

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TypeGuard, TypeVar

from config.json_values import Json, JsonMap
from config.yaml_reader import Path, Positioned
from runbooks.problems import Findings
from runbooks.values import kind

W = TypeVar("W", bound=StrEnum)


class Table:
    """One mapping of the document, at one place."""

    def __init__(self, entries: JsonMap, path: Path, findings: Findings) -> None:
        self.entries = entries
        self.path = path
        self.findings = findings

    def wrong(self, key: str, message: str) -> None:
        """Note a problem with the value of `key` (or with its absence)."""
        self.findings.add((*self.path, key), message)

    def allow(self, keys: Collection[str]) -> None:
        """Note every key that is not one of these."""
        for key in self.entries:
            if key not in keys:
                self.wrong(key, f"unknown key{suggestion(key, keys)}")

    def text(self, key: str, default: str | None = None) -> str:
        """The text under `key`; without a default it must be there and not empty."""
        value = self.entries.get(key)
        if key not in self.entries:
            if default is None:
                self.wrong(key, "is missing; expected text")
            return default or ""
        if isinstance(value, str) and value.strip():
            return value
        what = "an empty text" if isinstance(value, str) else kind(value)
        hint = "; write it in quotes" if isinstance(value, int) else ""
        self.wrong(key, f"expected text, not {what}{hint}")
        return default or ""

    def optional_text(self, key: str) -> str | None:
        """The text under `key`, or None where the key is not."""
        return self.text(key) if key in self.entries else None

    def number(self, key: str, default: int | None = None) -> int:
        """The whole number of at least 1 under `key`."""
        value = self.entries.get(key)
        if key not in self.entries and default is not None:
            return default
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        found = kind(value) if not isinstance(value, int) else str(value)
        what = "is missing; " if key not in self.entries else f"{found} is not accepted; "
        self.wrong(key, f"{what}expected a whole number from 1 on")
        return default or 1

    def truth(self, key: str, default: bool) -> bool:
        """The boolean under `key`."""
        value = self.entries.get(key, default)
        if isinstance(value, bool):
            return value
        self.wrong(key, f"expected true or false, not {kind(value)}")
        return default

    def table(self, key: str) -> "Table":
        """The mapping under `key`; an empty one where there is none."""
        value = self.entries.get(key, {})
        if not isinstance(value, Mapping):
            self.wrong(key, f"expected a mapping, not {kind(value)}")
            value = {}
        return Table(value, (*self.path, key), self.findings)

    def items(self, key: str, *, required: bool) -> Sequence[Json]:
        """The list under `key`; with `required` at least one item."""
        value = self.entries.get(key, [])
        if not is_list(value):
            self.wrong(key, f"expected a list, not {kind(value)}")
            return []
        if required and not value:
            self.wrong(key, "expected a list with at least one item")
        return value

    def tables(self, key: str, *, required: bool) -> Iterator["Table"]:
        """The mappings of the list under `key`."""
        for index, value in enumerate(self.items(key, required=required)):
            if isinstance(value, Mapping):
                yield Table(value, (*self.path, key, index), self.findings)
            else:
                self.findings.add(
                    (*self.path, key, index), f"expected a mapping, not {kind(value)}"
                )

    def word(self, key: str, words: type[W], default: W | None = None) -> W:
        """One of the words of an enumeration; without a default it must be there."""
        value = self.text(key, default)
        if value in frozenset(words):
            return words(value)
        if value:
            self.wrong(key, f"{shown(value)} is not known{suggestion(value, list(words))}")
        return default or next(iter(words))


def top(document: Positioned) -> Table:
    """The document as a table."""
    findings = Findings(document)
    if isinstance(document.value, Mapping):
        return Table(document.value, (), findings)
    findings.add((), f"expected a mapping at the top, not {kind(document.value)}")
    return Table({}, (), findings)


def suggestion(word: str, known: Collection[str]) -> str:
    """What may have been meant, and what there is."""
    close = difflib.get_close_matches(word, known, n=1)
    meant = f"; did you mean {close[0]}?" if close else ""
    there_is = ", ".join(sorted(set(known))) or "nothing"
    return f"{meant} There is: {there_is}" if meant else f"; there is: {there_is}"


def shown(text: str) -> str:
    """Text from a file, escaped and shortened for a message."""
    escaped = text.encode("unicode_escape").decode("ascii")
    return f"'{escaped[:60]}{'…' if len(escaped) > 60 else ''}'"  # noqa: PLR2004  one line


def is_list(value: object) -> TypeGuard[Sequence[Json]]:
    """Whether it is a list of values."""
    return isinstance(value, Sequence) and not isinstance(value, str)
