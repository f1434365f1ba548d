"""Our values as JSON lines between the snapshot child and the bot. Pure.

One line for each value, so that no single decoding holds the interpreter for long; only fields
that differ from their default, times in whole seconds as Slurm has them.
"""

import json
from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, fields
from datetime import datetime, timedelta
from functools import lru_cache
from types import UnionType
from typing import Any, TypeVar, cast, get_args, get_type_hints

from config.clock import EPOCH

_Value = TypeVar("_Value")
_SECOND = timedelta(seconds=1)
_LINE = json.JSONEncoder(separators=(",", ":"))
_Convert = Callable[[Any], Any]


def to_line(kind: str, value: object) -> str:
    """One value, with the word that says what it is."""
    packed: dict[str, object] = {}
    for name, default, pack in _packers(cast(Hashable, type(value))):
        content = getattr(value, name)
        if content != default:
            packed[name] = content if pack is None or content is None else pack(content)
    return _LINE.encode([kind, packed])


def from_packed(target: type[_Value], packed: Mapping[str, Any]) -> _Value:
    """The value that `to_line` packed."""
    content = dict(packed)
    for name, unpack in _unpackers(cast(Hashable, target)):
        if content.get(name) is not None:
            content[name] = unpack(content[name])
    return target(**content)


@lru_cache
def _packers(target: Hashable) -> tuple[tuple[str, object, _Convert | None], ...]:
    """Name, default and packer of each field."""
    hints = get_type_hints(target)
    return tuple(
        (
            field.name,
            field.default if field.default_factory is MISSING else field.default_factory(),
            _converters(hints[field.name])[0],
        )
        for field in fields(cast(Any, target))
    )


@lru_cache
def _unpackers(target: Hashable) -> tuple[tuple[str, _Convert], ...]:
    """Name and unpacker of each field that JSON does not hold as it is."""
    found = [(name, _converters(hint)[1]) for name, hint in get_type_hints(target).items()]
    return tuple((name, unpack) for name, unpack in found if unpack is not None)


def _converters(hint: Any) -> tuple[_Convert | None, _Convert | None]:
    plain = next((one for one in get_args(hint) if one is not type(None)), hint)
    kind = plain if isinstance(hint, UnionType) else hint
    if kind is datetime:
        return lambda at: (at - EPOCH) // _SECOND, lambda count: EPOCH + count * _SECOND
    if kind is timedelta:
        return lambda length: length // _SECOND, lambda count: count * _SECOND
    name = getattr(kind, "__origin__", kind)
    if name is frozenset:
        return sorted, frozenset
    if name is tuple:
        return list, tuple
    return None, kind if isinstance(kind, type) and issubclass(
        kind, str
    ) and kind is not str else None
