"""Many node names in one record, which holds 8 KiB: folded when it is written, unfolded when it is read.

Used by whoever records lists of nodes or locks, and by the folds and projections that read them. Pure.
What does not fit even folded must be refused before: the ledger would keep it as an artefact, which no
projection reads.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from config.json_values import Json, JsonMap
from config.node_names import NodeNameError, expand_unchecked, fold, node_name

FEW = 64
"""So many are written out one by one."""
MOST_FOLDED = 2000
"""Characters of the nodes of one run or label; its locks, twice as many, have to fit as well."""
_PACKED = "packed"


def packed(data: Mapping[str, Any]) -> dict[str, Any]:
    """`data` with its long lists folded, and their keys listed under `packed`."""
    found = {key: _folded(value) for key, value in data.items() if _long(value)}
    found = {key: value for key, value in found.items() if value is not None}
    return {**data, **found, _PACKED: sorted(found)} if found else dict(data)


def unpacked(data: Mapping[str, Any]) -> dict[str, Any]:
    """What was handed to `packed`, each list in natural order."""
    keys = data.get(_PACKED, ())
    plain = {key: value for key, value in data.items() if key != _PACKED}
    return {**plain, **{key: _unfolded(plain[key]) for key in keys}}


def too_many(parameters: JsonMap) -> str:
    """Why a run with these parameters does not fit into a record; the empty string when it does."""
    for name, value in packed(parameters).items():
        if isinstance(value, list) and sum(len(str(text)) + 3 for text in value) > MOST_FOLDED:
            return (
                f"{name}: these nodes fold into more than {MOST_FOLDED:,} characters, which no record "
                "holds: run it for fewer at a time"
            )
    return ""


def _long(value: Json) -> bool:
    return isinstance(value, list | tuple) and len(value) > FEW


def _folded(texts: Sequence[str]) -> list[str] | None:
    """`node:gpu-[01-99]` for many `node:gpu-…`; None where that would say anything else."""
    named: dict[str, list[str]] = {}
    others: list[str] = []
    for text in texts:
        head, mark, name = str(text).rpartition(":")
        if _plain(name):
            named.setdefault(head + mark, []).append(name)
        else:
            others.append(str(text))
    made = [*others, *(f"{head}{fold(names)}" for head, names in named.items())]
    return made if sorted(_unfolded(made)) == sorted(str(text) for text in texts) else None


def _unfolded(texts: Sequence[str]) -> list[str]:
    found: list[str] = []
    for text in texts:
        head, mark, names = text.rpartition(":")
        try:
            found.extend(f"{head}{mark}{name}" for name in expand_unchecked(names))
        except NodeNameError:
            found.append(text)
    return found


def _plain(name: str) -> bool:
    try:
        node_name(name)
    except NodeNameError:
        return False
    return True
