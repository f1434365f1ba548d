"""Whether a value fits its declared type; pure. Called by the loader, the engine and the doors.

The engine calls `settle` for the parameters of a request and `misfits` for the arguments of each
step after evaluation: a declared type is checked again right before it is used.
"""

import re
from collections.abc import Mapping, Sequence
from typing import assert_never

from actions.contract import Field, ValueType
from config.durations import parse_duration
from config.json_values import Json, JsonMap
from config.node_names import NodeName, NodeNameError, node_name
from runbooks.model import Parameter, Runbook

LONGEST_TEXT = 4096
"""Characters of one text argument: it may be written into a command or a Reason."""
_LONGEST_UNIT = 128
_JOB = re.compile(r"[0-9]{1,10}(?:_[0-9]{1,7}|\+[0-9]{1,4})?", re.ASCII)
_UNIT_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.@:-")


class ParameterError(ValueError):
    """Values that do not fit what a runbook asks for; one line for each."""


def misfit(type_: ValueType, value: Json) -> str:  # noqa: PLR0911  one case a type
    """Why `value` is not of this type, with what would be right; empty when it fits."""
    match type_:
        case ValueType.TEXT:
            return _text(value)
        case ValueType.NUMBER:
            whole = isinstance(value, int) and not isinstance(value, bool)
            return "" if whole else f"expected a whole number, not {kind(value)}"
        case ValueType.TRUTH:
            return "" if isinstance(value, bool) else f"expected true or false, not {kind(value)}"
        case ValueType.DURATION:
            return _duration(value)
        case ValueType.NODE:
            return _node(value)
        case ValueType.NODES:
            return _nodes(value)
        case ValueType.UNIT:
            return _unit(value)
        case ValueType.JOB:
            return _job(value)
        case ValueType.FACTS:
            mapping = isinstance(value, Mapping) or _is_list(value)
            return "" if mapping else f"expected a mapping or a list, not {kind(value)}"
        case _:
            assert_never(type_)


def misfits(fields: Mapping[str, Field], values: JsonMap) -> tuple[str, ...]:
    """What is wrong with evaluated arguments: `node: expected …`; empty when all fits."""
    found = [f"{name}: there is no such argument" for name in values if name not in fields]
    for name, field in fields.items():
        value = values.get(name)
        if value is None and not field.required:
            continue
        why = misfit(field.type, value)
        if why:
            found.append(f"{name}: {why}")
    return tuple(found)


def settle(runbook: Runbook, given: JsonMap) -> JsonMap:
    """All parameters of a run: what was given, and the defaults. Raises ParameterError."""
    known = {parameter.name for parameter in runbook.parameters}
    wrong = [
        f"{name}: {runbook.name} has no such parameter; it has {', '.join(sorted(known)) or 'none'}"
        for name in given
        if name not in known
    ]
    settled: dict[str, Json] = {}
    for parameter in runbook.parameters:
        settled[parameter.name], why = _settled(parameter, given)
        if why:
            wrong.append(f"{parameter.name}: {why} ({parameter.help})")
    if wrong:
        raise ParameterError("\n".join(wrong))
    return settled


def _settled(parameter: Parameter, given: JsonMap) -> tuple[Json, str]:
    value = given.get(parameter.name)
    if value is None:
        return parameter.default, (
            f"is missing; write {parameter.name}=…" if parameter.required else ""
        )
    return value, misfit(parameter.type, value)


def nodes_in(types: Mapping[str, ValueType], values: JsonMap) -> tuple[NodeName, ...]:
    """Every node that fitting values name, each once, whatever the parameter is called."""
    found: list[NodeName] = []
    for name, type_ in types.items():
        value = values.get(name)
        if type_ is ValueType.NODE and isinstance(value, str):
            found.append(NodeName(value))
        elif type_ is ValueType.NODES and isinstance(value, list | tuple):
            found.extend(NodeName(str(entry)) for entry in value)
    return tuple(dict.fromkeys(found))


def kind(value: Json) -> str:
    """What sort of value it is, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "a truth value"
        case int():
            return "a number"
        case str():
            return "text"
        case Mapping():
            return "a mapping"
        case _:
            return "a list"


def _text(value: Json) -> str:
    if not isinstance(value, str):
        return f"expected text, not {kind(value)}"
    if len(value) > LONGEST_TEXT:
        return f"longer than {LONGEST_TEXT:,} characters"
    return "" if "\0" not in value else "a text cannot hold a NUL"


def _duration(value: Json) -> str:
    if not isinstance(value, str):
        return f"expected a duration such as 90s or 15m, not {kind(value)}"
    try:
        parse_duration(value)
    except ValueError as error:
        return str(error)
    return ""


def _node(value: Json) -> str:
    if not isinstance(value, str):
        return f"expected a node name, not {kind(value)}"
    try:
        node_name(value)
    except NodeNameError as error:
        return str(error)
    return ""


def _nodes(value: Json) -> str:
    if not _is_list(value) or not isinstance(value, Sequence):
        return f"expected a list of node names, not {kind(value)}"
    if not value:
        return "an empty list of nodes is never taken to mean all nodes"
    return next((why for why in map(_node, value) if why), "")


def _job(value: Json) -> str:
    fits = isinstance(value, str) and _JOB.fullmatch(value)
    return "" if fits else "expected a job id such as 12, 12_3 or 12+1"


def _unit(value: Json) -> str:
    fits = (
        isinstance(value, str)
        and 0 < len(value) <= _LONGEST_UNIT
        and value[0].isalnum()
        and _UNIT_CHARACTERS.issuperset(value)
    )
    return "" if fits else "expected the name of a systemd unit, for example slurmd"


def _is_list(value: Json) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
