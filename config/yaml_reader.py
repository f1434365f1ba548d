"""Reads the one kind of YAML that this program accepts, with the place of every value.

Called for settings, roles, runbooks and causes. YAML lets one text mean several things (`no` is a
country or a refusal, `010` is ten or eight, `1:30` is ninety), and a runbook must mean one thing to
the person who reviews it and to the bot. So everything with two readings is refused, with the line
and what to write instead. Values are built from the parser's events and from nothing else: no tag
is ever resolved, no object constructed, no alias followed.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from config.json_values import Json

Path = tuple[str | int, ...]
"""The way to a value: keys and list positions from the top."""

LARGEST_FILE = 1024 * 1024
"""Bytes; a longer file is refused before it is parsed (design 6)."""
DEEPEST = 50
"""Levels of nesting; a person cannot read more, and a hostile file would be deeper."""
LARGEST_INTEGER = 2**53
"""Beyond this, other readers of the audit log would round the number (design 4)."""

_INTEGER = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
_NUMBER_LIKE = re.compile(
    r"""[-+]?(?:
        [0-9][0-9_,]*                                  # 010, 1_000, +5, 1,000
      | (?:[0-9][0-9_]*\.[0-9_]*|\.[0-9_]+)(?:e[-+]?[0-9]+)?   # 1.10, .5, 1.5e3
      | [0-9][0-9_]*e[-+]?[0-9]+                       # 1e3
      | 0x[0-9a-f_]+ | 0o[0-7_]+ | 0b[01_]+            # 0x1F
      | [0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?    # 1:30, 10:30:00
      | \.(?:inf|nan)
    )""",
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)
_DATE_LIKE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?", re.ASCII)
_OTHER_WORDS = frozenset({"yes", "no", "on", "off", "y", "n", "true", "false", "null", "~"})
_SECRET_KEY = re.compile("token|secret|password|passwd", re.IGNORECASE)
"""Under such a key a value may be a secret that does not belong there: it is not repeated."""
_SHOWN = 40


@dataclass(frozen=True, slots=True, order=True)
class YamlProblem:
    """One thing that is wrong, where, and what would be right."""

    source: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        """`file:line:column: message`."""
        return f"{self.source}:{self.line}:{self.column}: {self.message}"


class YamlProblems(ValueError):
    """A file that cannot be accepted; `problems` holds all that was found, in the file's order."""

    def __init__(self, problems: tuple[YamlProblem, ...]) -> None:
        """All problems of one file."""
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Positioned:
    """A document: plain values, and where each stands."""

    source: str
    value: Json
    positions: Mapping[Path, tuple[int, int]]

    def position(self, path: Path) -> tuple[int, int]:
        """Line and column (both from 1) of the key or list item at `path`.

        Of the nearest thing above it where the path itself is not in the file (a missing key).
        """
        for length in range(len(path), -1, -1):
            found = self.positions.get(path[:length])
            if found is not None:
                return found
        return (1, 1)

    def problem(self, path: Path, message: str) -> YamlProblem:
        """A problem at that place, for the checks that follow the reading."""
        line, column = self.position(path)
        return YamlProblem(self.source, line, column, message)


def read(text: str, source: str) -> Positioned:
    """The one document in `text`; `source` names the file in messages. Raises YamlProblems."""
    if len(text.encode("utf-8", errors="surrogatepass")) > LARGEST_FILE:
        problem = YamlProblem(source, 1, 1, f"the file is larger than {LARGEST_FILE:,} bytes")
        raise YamlProblems((problem,))
    builder = _Builder(source)
    value: Json = None
    try:
        value = builder.document(_events(text))
    except _Stop:
        pass  # the problem that stopped the reading is noted
    except MarkedYAMLError as error:
        builder.note_error(error)
    except YAMLError as error:
        builder.note(1, 1, f"this is not YAML: {_first_line(error)}")
    if builder.problems:
        raise YamlProblems(tuple(sorted(builder.problems)))
    return Positioned(source, value, builder.positions)


def _events(text: str) -> Iterator[Any]:
    """The parser's events: text and marks, nothing interpreted."""
    return iter(YAML(typ="safe", pure=True).parse(text))


class _Stop(Exception):
    """The rest of the file cannot be judged."""


class _Builder:
    """Turns events into plain values, and notes what is refused."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.problems: list[YamlProblem] = []
        self.positions: dict[Path, tuple[int, int]] = {}

    def document(self, events: Iterator[Any]) -> Json:
        """The value of the only document."""
        value: Json = None
        documents = 0
        for event in events:
            match event:
                case StreamStartEvent() | StreamEndEvent() | DocumentEndEvent():
                    continue
                case DocumentStartEvent():
                    documents += 1
                    self._check_start(event, documents)
                case _:
                    value = self._value(event, events, ())
        return value

    def note(self, line: int, column: int, message: str) -> None:
        """Remember a problem and go on."""
        self.problems.append(YamlProblem(self.source, line, column, message))

    def note_error(self, error: MarkedYAMLError) -> None:
        """Remember what the parser itself could not accept."""
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        said = ", ".join(part for part in (error.context, error.problem) if part)
        self.note(line, column, f"this is not YAML: {said}")

    def _check_start(self, event: Any, documents: int) -> None:
        if documents > 1:
            self._stop(event, "a second document begins here: one file holds one document")
        if event.version or event.tags:
            self._at(event, "directives (%YAML, %TAG) are not accepted: remove the line")

    def _value(self, event: Any, events: Iterator[Any], path: Path) -> Json:
        if len(path) > DEEPEST:
            self._stop(event, f"nested deeper than {DEEPEST} levels")
        self.positions.setdefault(path, _place(event))
        self._check_plainness(event)
        match event:
            case ScalarEvent():
                return self._scalar(event, path)
            case SequenceStartEvent():
                return self._sequence(events, path)
            case MappingStartEvent():
                return self._mapping(events, path)
        return None

    def _check_plainness(self, event: Any) -> None:
        """Refuse whatever would make a text mean something that does not stand there."""
        if isinstance(event, AliasEvent):
            self._at(event, f"an alias (*{event.anchor}) is not accepted: write the value out")
        elif event.anchor is not None:
            self._at(event, f"an anchor (&{event.anchor}) is not accepted: remove it")
        if getattr(event, "ctag", None):
            self._at(event, f"a tag ({_shown(str(event.ctag))}) is not accepted: remove it")

    def _sequence(self, events: Iterator[Any], path: Path) -> Json:
        values: list[Json] = []
        for event in events:
            if isinstance(event, SequenceEndEvent):
                break
            values.append(self._value(event, events, (*path, len(values))))
        return values

    def _mapping(self, events: Iterator[Any], path: Path) -> Json:
        values: dict[str, Json] = {}
        for event in events:
            if isinstance(event, MappingEndEvent):
                break
            key = self._key(event, events, path)
            if key is None:
                self._value(next(events), events, (*path, "?"))
            elif key in values:
                self._duplicate(event, (*path, key))
                self._value(next(events), events, (*path, key))
            else:
                self.positions[*path, key] = _place(event)
                values[key] = self._value(next(events), events, (*path, key))
        return values

    def _key(self, event: Any, events: Iterator[Any], path: Path) -> str | None:
        """The key, or None where it cannot be one (its value is then read past)."""
        self._check_plainness(event)
        if not isinstance(event, ScalarEvent):
            hint = "a key must be text; a {{ template }} must stand in quotes"
            self._at(event, hint)
            if not isinstance(event, AliasEvent):
                self._value(event, events, (*path, "?"))
            return None
        if event.style is None and event.value == "<<":
            self._at(event, "a merge key (<<) is not accepted: write the keys out")
            return None
        key = self._scalar(event, ())
        if isinstance(key, str):
            return key
        if not (self.problems and self.problems[-1].line == event.start_mark.line + 1):
            self._at(event, f'a key must be text: write "{_shown(event.value)}" in quotes')
        return None

    def _duplicate(self, event: Any, path: Path) -> None:
        first = self.positions[path][0]
        self._at(event, f"the key {_shown(event.value)} stands twice; first in line {first}")

    def _scalar(self, event: Any, path: Path) -> Json:
        text: str = event.value
        if event.style is not None:
            return text
        if text in {"", "null"}:
            return None
        if text in {"true", "false"}:
            return text == "true"
        shown = "this" if path and _SECRET_KEY.search(str(path[-1])) else _shown(text)
        if _INTEGER.fullmatch(text):
            return self._integer(event, text, shown)
        why = _ambiguity(text, shown)
        if why:
            self._at(event, why)
            return None
        return text

    def _integer(self, event: Any, text: str, shown: str) -> Json:
        if len(text) > 17 or abs(int(text)) > LARGEST_INTEGER:  # 16 digits and a sign
            self._at(event, f"{shown} is beyond 2**53: write it in quotes, as text")
            return None
        return int(text)

    def _at(self, event: Any, message: str) -> None:
        line, column = _place(event)
        self.note(line, column, message)

    def _stop(self, event: Any, message: str) -> NoReturn:
        self._at(event, message)
        raise _Stop


def _ambiguity(text: str, shown: str) -> str:
    """Why a plain scalar is refused, with what to write; empty when it is simply text."""
    if text.lower() in _OTHER_WORDS:
        return f'{shown} can be read as a truth value or null: write true, false, null or "{shown}"'
    if _DATE_LIKE.fullmatch(text):
        return f'{shown} can be read as a date: write "{shown}" in quotes'
    if _NUMBER_LIKE.fullmatch(text):
        return f'{shown} can be read as more than one number: write "{shown}" in quotes'
    return ""


def _place(event: Any) -> tuple[int, int]:
    return (event.start_mark.line + 1, event.start_mark.column + 1)


def _shown(text: str) -> str:
    """Text from the file, shortened and escaped for a message."""
    escaped = text.encode("unicode_escape").decode("ascii")
    return escaped if len(escaped) <= _SHOWN else f"{escaped[:_SHOWN]}…"


def _first_line(error: Exception) -> str:
    return _shown((str(error).splitlines() or [""])[0])
