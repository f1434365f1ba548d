"""Scalars as Slurm writes them, in JSON of any release and in text, as plain values. Pure.

Used by the readers of nodes, jobs and places. A form this version does not know raises
`UnknownForm`: a wrong guess about a cluster is worse than no answer.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from config.clock import EPOCH
from config.node_names import NodeName, NodeNameError, expand_unchecked, node_name

JsonObject = Mapping[str, object]

NO_VALUES = frozenset({"", "(null)", "N/A", "n/a", "None", "Unknown", "NONE"})
"""What the text tools print for nothing."""
_INFINITE = 0xFFFFFFFF
_NO_VAL = 0xFFFFFFFE
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", re.ASCII)
_SPAN = re.compile(r"(?:(\d+)-)?(?:(?:(\d+):)?(\d+):)?(\d+)", re.ASCII)
_GPU = re.compile(
    r"(?:gres[:/])?gpu(?::[^:=,()\s]*[^\d:=,()\s][^:=,()\s]*)?(?:[:=](\d+))?", re.ASCII
)
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)


class UnknownForm(Exception):
    """An answer in a form this version does not know; says what was found where."""


def text_of(source: JsonObject, key: str) -> str:
    """A text; absent and null are the empty text."""
    value = source.get(key)
    if value is None:
        return ""
    if isinstance(value, str):
        return value if value.isascii() else encodable(value)
    raise UnknownForm(f"{key} is {value!r}, not a text")


def encodable(text: str) -> str:
    """The text without lone surrogates, which a JSON escape can make and UTF-8 cannot hold."""
    return text.encode("utf-8", errors="backslashreplace").decode("utf-8")


def number_of(source: JsonObject, key: str) -> int | None:
    """A whole number: plain (22.05) or as `{set, infinite, number}` (23.02 and later)."""
    value = source.get(key)
    if type(value) is int:  # by far the most
        return None if value in {_INFINITE, _NO_VAL} else value
    if isinstance(value, Mapping):
        if not value.get("set", True) or value.get("infinite", False):
            return None
        value = value.get("number")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnknownForm(f"{key} is {value!r}, not a number")
    whole = int(value)
    return None if whole in {_INFINITE, _NO_VAL} else whole


def truth_of(source: JsonObject, key: str, *, otherwise: bool) -> bool:
    """A truth value; `otherwise` where the release does not tell."""
    value = source.get(key)
    if value is None:
        return otherwise
    if isinstance(value, bool | int):
        return bool(value)
    raise UnknownForm(f"{key} is {value!r}, neither true nor false")


def words_of(source: JsonObject, key: str) -> tuple[str, ...]:
    """Words given as a list, or as one text with commas (22.05)."""
    value = source.get(key)
    if value is None:
        return ()
    if isinstance(value, str):
        return split_words(value)
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return tuple(value)
    raise UnknownForm(f"{key} is {value!r}, not a list of words")


def part_of(source: JsonObject, key: str) -> JsonObject:
    """A nested object; empty where it is missing."""
    value = source.get(key)
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    raise UnknownForm(f"{key} is {value!r}, not an object")


def moment_of(source: JsonObject, key: str) -> datetime | None:
    """A time in seconds since 1970; zero means none."""
    seconds = number_of(source, key)
    return EPOCH + timedelta(seconds=seconds) if seconds else None


@lru_cache(maxsize=4096)
def moment(text: str) -> datetime | None:
    """A time as the text tools print it under TZ=UTC."""
    if text in NO_VALUES:
        return None
    if not _TIME.fullmatch(text):
        raise UnknownForm(f"{text!r} is not a time like 2026-11-30T16:54:42")
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@lru_cache(maxsize=4096)
def span(text: str) -> timedelta | None:
    """A limit such as `7-00:00:00`, `1:00:00`, `30:00`; None for no limit."""
    if text in NO_VALUES or text in {"UNLIMITED", "INFINITE", "Partition_Limit", "NOT_SET"}:
        return None
    found = _SPAN.fullmatch(text)
    if found is None:
        raise UnknownForm(f"{text!r} is not a time limit like 7-00:00:00")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def minutes_of(source: JsonObject, key: str) -> timedelta | None:
    """A limit in minutes; None for no limit."""
    minutes = number_of(source, key)
    return None if minutes is None else timedelta(minutes=minutes)


def number(text: str, what: str) -> int:
    """A plain whole number in a text answer."""
    if not text.isascii() or not text.isdigit():
        raise UnknownForm(f"{what} is {text!r}, not a whole number")
    return int(text)


def bare(text: str) -> str:
    """A text field with the tools' words for nothing taken away."""
    return "" if text in {"(null)", "N/A"} else text


def split_words(text: str) -> tuple[str, ...]:
    """Words between commas; none for the tools' words for nothing."""
    return () if text in NO_VALUES else tuple(word for word in text.split(",") if word)


@lru_cache(maxsize=4096)
def node_list(text: str) -> tuple[NodeName, ...]:
    """The nodes of a host list such as `gpu-[01-04,07]`, as the controller wrote it."""
    if text in NO_VALUES:
        return ()
    try:
        if _PLAIN.fullmatch(text):
            return (node_name(text),)
        return expand_unchecked(text).names
    except NodeNameError as error:
        raise UnknownForm(f"a list of nodes that cannot be read: {error}") from error


@lru_cache(maxsize=4096)
def gpu_count(text: str) -> int:
    """GPUs in a Gres or TRES text (`gpu:h100:8(S:0-1)`, `cpu=2,gres/gpu=16`), summed over types.

    `gres/gpu=16,gres/gpu:h100=16` names the same GPUs twice: a total without a type wins.
    """
    total: int | None = None
    typed = 0
    for item in re.split(r",(?![^(]*\))", text):
        word = item.partition("(")[0]
        found = _GPU.fullmatch(word)
        if found is None:
            continue
        count = int(found[1]) if found[1] else 1
        if "=" in word and ":" not in word:
            total = count
        else:
            typed += count
    return typed if total is None else total
