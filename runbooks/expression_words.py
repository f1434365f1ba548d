"""The filters and tests of the expression language, each a function over plain values.

Called by `runbooks.expression_tree`. None of them turns text into a number, gives an order that
depends on the process, or makes much out of little.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from config.json_values import Json

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_LONGEST = 64 * 1024


class WordError(ValueError):
    """A filter or test was given what it cannot take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One filter or test."""

    apply: Callable[..., Json]
    usage: str
    fewest: int = 0
    most: int = 0


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise WordError("takes text only")
    return value


def _number(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise WordError("takes a whole number only")
    return value


def _list(value: Json) -> Sequence[Json]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise WordError("takes a list only")
    return value


def _mapping(value: Json) -> Mapping[str, Json]:
    if not isinstance(value, Mapping):
        raise WordError("takes a mapping only")
    return value


def _join(value: Json, between: Json = ", ") -> str:
    parts = [item if isinstance(item, str) else str(_number(item)) for item in _list(value)]
    separator = _text(between)
    if sum(map(len, parts)) + len(separator) * len(parts) > _LONGEST:
        raise WordError(f"the text would be longer than {_LONGEST:,}")
    return separator.join(parts)


def _length(value: Json) -> int:
    if isinstance(value, str | Sequence | Mapping):
        return len(value)
    raise WordError("takes text, a list or a mapping")


def _shorten(value: Json, size: Json) -> str:
    text, limit = _text(value), _number(size)
    return text if len(text) <= limit else f"{text[: max(limit - 1, 0)]}…"


def _lines_with(value: Json, wanted: Json) -> str:
    """The last line that holds the wanted text, for evidence out of a log."""
    needle = _text(wanted)
    found = [line for line in _text(value).splitlines() if needle in line]
    return found[-1].strip() if found else ""


def _prefixed(value: Json, before: Json) -> list[Json]:
    """Each text of a list with the same beginning: names of locks out of names of nodes."""
    return [f"{_text(before)}{_text(item)}" for item in _list(value)]


def _if_empty(value: Json, instead: Json) -> Json:
    return instead if value is None or value == "" else value


def _values(value: Json) -> list[Json]:
    return [_mapping(value)[key] for key in sorted(_mapping(value))]


def _pairs(value: Json) -> str:
    """`train DOWN, debug UP`."""
    found = [f"{key} {item}" for key, item in sorted(_mapping(value).items())]
    return _join(found)


def _age(value: Json) -> str:
    """Seconds as people say them, two units at most."""
    if value is None:
        return "an unknown time"
    seconds = _number(value)
    if seconds < 0:
        raise WordError("takes seconds from 0 on")
    if seconds < _MINUTE:
        return f"{seconds} s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE} min"
    if seconds < _DAY:
        return f"{seconds // _HOUR} h {seconds % _HOUR // _MINUTE} min"
    return f"{seconds // _DAY} d {seconds % _DAY // _HOUR} h"


def _starts(value: Json, wanted: Json) -> bool:
    return _text(value).startswith(_text(wanted))


def _default(value: Json, _instead: Json) -> Json:
    return value


def _asked_elsewhere(_value: Json) -> bool:
    return True


def _word(apply: Callable[..., Any], usage: str, fewest: int = 0, most: int = 0) -> Word:
    return Word(apply=apply, usage=usage, fewest=fewest, most=max(fewest, most))


FILTERS: Final[Mapping[str, Word]] = {
    "age": _word(_age, "{{ seconds | age }}"),
    "default": _word(_default, "{{ name | default(value) }}", 1),
    "if_empty": _word(_if_empty, "{{ name | if_empty(value) }}", 1),
    "join": _word(_join, "{{ list | join(', ') }}", 0, 1),
    "length": _word(_length, "{{ value | length }}"),
    "line_with": _word(_lines_with, "{{ text | line_with('Xid') }}", 1),
    "lower": _word(lambda value: _text(value).lower(), "{{ text | lower }}"),
    "pairs": _word(_pairs, "{{ mapping | pairs }}"),
    "prefixed": _word(_prefixed, "{{ list | prefixed('node:') }}", 1),
    "shorten": _word(_shorten, "{{ text | shorten(80) }}", 1),
    "trim": _word(lambda value: _text(value).strip(), "{{ text | trim }}"),
    "upper": _word(lambda value: _text(value).upper(), "{{ text | upper }}"),
    "values": _word(_values, "{{ mapping | values }}"),
}
"""By name, as after `|`."""

TESTS: Final[Mapping[str, Word]] = {
    "defined": _word(_asked_elsewhere, "name is defined"),
    "undefined": _word(_asked_elsewhere, "name is undefined"),
    "null": _word(lambda value: value is None, "name is null"),
    "starting_with": _word(_starts, 'text is starting_with("Low ")', 1),
}
"""By name, as after `is`."""
