"""The stored form of a record: canonical JSON that any later release and any auditor can read.

ASCII, sorted keys, no spaces, no floats, integers within 2**53, at most 8 KiB. Pure, and it cannot
fail: whatever an event carries becomes *some* record, because an effect whose record was lost is
worse than a record with a clumsy value. What does not fit is named by its digest and handed back
to be kept as an artefact.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeGuard

from audit_log.errors import NewerLedger
from audit_log.records import Event, EventKind, Record
from config.clock import from_microseconds, microseconds
from config.ids import ActorId, ClusterName, RunId, StepId
from config.json_values import Json, JsonMap
from config.node_names import NodeName
from config.redaction import Redactor

VERSION = 1
"""Version of the record format. A new meaning is a new number; every old one stays readable."""

LARGEST_RECORD = 8192
"""Bytes of one record."""

LARGEST_INTEGER = 2**53
"""Larger whole numbers lose digits in other JSON readers, so they are stored as text."""

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_TEXT = frozenset({str})
_KINDS = frozenset(kind.value for kind in EventKind)
_LONGEST_NAME = 300
_DEEPEST = 32
_MOST_VALUES = 20_000
_FRAME = 220
"""Room for everything in a record outside `event`, with the largest numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """The text to be stored, and what was too long for it."""

    text: str
    digest: str
    spilled: tuple[bytes, ...] = ()
    """Contents that the text names by SHA-256 only."""


def encode(event: Event, *, seq: int, at: datetime, prev: str, redactor: Redactor) -> Encoded:
    """The record of `event` at this place of the chain, its data redacted once more."""
    names, data = _names(event), plain_map(event.data)
    spilled: tuple[bytes, ...] = ()
    inner = canonical({**names, "data": data})
    if not redactor.is_clean(inner):
        data = redactor.values(data)
        inner = canonical({**names, "data": data})
    if len(inner) > LARGEST_RECORD - _FRAME:
        data, spilled = fit(data, LARGEST_RECORD - _FRAME - len(canonical(names)))
        inner = canonical({**names, "data": data})
    text = (
        f'{{"at_us":{microseconds(at)},"event":{inner},"prev":"{prev}","seq":{seq},"v":{VERSION}}}'
    )
    return Encoded(text=text, digest=digest_of(text), spilled=spilled)


def decode(text: str, digest: str) -> Record:
    """The record that `text` holds. Raises NewerLedger for what a later release wrote."""
    stored = json.loads(text)
    if stored["v"] > VERSION or stored["event"]["kind"] not in _KINDS:
        raise NewerLedger(
            f"record {stored['seq']} (version {stored['v']}, {stored['event']['kind']}) was written"
            " by a newer release of nodewarden; start that release or a newer one"
        )
    event = stored["event"]
    return Record(
        seq=stored["seq"],
        at=from_microseconds(stored["at_us"]),
        event=Event(
            kind=EventKind(event["kind"]),
            actor=ActorId(event["actor"]),
            run=RunId(event["run"]) if "run" in event else None,
            step=StepId(event["step"]) if "step" in event else None,
            cluster=ClusterName(event["cluster"]) if "cluster" in event else None,
            node=NodeName(event["node"]) if "node" in event else None,
            data=event["data"],
        ),
        prev=stored["prev"],
        digest=digest,
    )


def digest_of(text: str) -> str:
    """SHA-256 over the stored text."""
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def canonical(value: Json) -> str:
    """The one JSON text of a plain value."""
    return _ENCODER.encode(value)


def plain_map(value: Mapping[object, object] | JsonMap) -> dict[str, Json]:
    """A mapping made plain; one that is plain already is handed back as it is."""
    if _is_plain(value):
        return value
    made = _plain(value, 0, _Budget(_MOST_VALUES))
    return made if isinstance(made, dict) else {"value": made}


def _is_plain(value: object) -> TypeGuard[dict[str, Json]]:
    """Whether this is, in a few containers, what `_plain` would make of it: nearly every event is,
    and making it again is the longest part of writing it down. Never raises: it looks only at
    values whose type it knows.
    """
    if type(value) is not dict:
        return False
    containers: list[Any] = [value]
    left = _MOST_VALUES
    for container in containers:  # grows while it is walked
        left -= len(container)
        if len(containers) > _DEEPEST or left <= 0:
            return False
        if type(container) is dict and not (
            _TEXT.issuperset(map(type, container)) and all(map(str.isascii, container))
        ):
            return False
        for part in container.values() if type(container) is dict else container:
            kind = type(part)
            if kind is str:
                if not part.isascii():
                    return False
            elif kind is dict or kind is list:
                containers.append(part)
            elif kind is int:
                if not -LARGEST_INTEGER <= part <= LARGEST_INTEGER:
                    return False
            elif kind is not bool and part is not None:
                return False
    return True


def fit(data: dict[str, Json], room: int) -> tuple[dict[str, Json], tuple[bytes, ...]]:
    """`data` in at most `room` bytes: the largest values are replaced by their digests first."""
    size = len(canonical(data))
    spilled: list[bytes] = []
    kept = dict(data)
    for key in sorted(data, key=lambda key: (-len(canonical(data[key])), key)):
        if size <= room:
            break
        note, content = _spill(data[key])
        saved = len(canonical(data[key])) - len(canonical(note))
        if saved <= 0:
            break
        kept[key], size = note, size - saved
        spilled.append(content)
    if size <= room:
        return kept, tuple(spilled)
    note, content = _spill(data)
    return {"left_out": note}, (content,)


def _spill(value: Json) -> tuple[dict[str, Json], bytes]:
    """What stands in the record for a value that is too long, and the content itself."""
    text = value if isinstance(value, str) else canonical(value)
    content = text.encode("utf-8")
    note: dict[str, Json] = {
        "artefact": hashlib.sha256(content).hexdigest(),
        "bytes": len(content),
        "note": "too long for a record",
    }
    return note, content


@dataclass(slots=True)
class _Budget:
    """How many values may still be taken in; ends cyclic and absurdly wide data."""

    left: int


def _plain(value: object, depth: int, budget: _Budget) -> Json:
    """Any value as plain JSON. Never raises."""
    budget.left -= 1
    if depth > _DEEPEST or budget.left < 0:
        return "(left out: nested too deep or too many values)"
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes(bytes(value))
    return _container(value, depth, budget)


def _container(value: object, depth: int, budget: _Budget) -> Json:
    """Mappings, sequences and sets; the repr of anything else."""
    try:
        if isinstance(value, Mapping):
            return {
                _key(key): _plain(item, depth + 1, budget)
                for key, item in value.items()
                if budget.left > 0
            }
        if isinstance(value, Set):
            value = sorted(value, key=repr)
        if isinstance(value, Sequence):
            return [_plain(item, depth + 1, budget) for item in value if budget.left > 0]
        return _text(repr(value))
    except Exception as error:  # noqa: BLE001  code of a foreign value may do anything
        return f"(unreadable {type(value).__name__}: {type(error).__name__})"


def _text(value: str) -> str:
    """Text without lone surrogates, which no other reader accepts."""
    text = str.__str__(value)
    if text.isascii():  # nearly every text; the writer thread has no time to lose
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _integer(value: int) -> int | str:
    """A number that every JSON reader reads alike; hexadecimal text beyond that."""
    number = int(value)
    return number if -LARGEST_INTEGER <= number <= LARGEST_INTEGER else hex(number)


def _bytes(value: bytes) -> Json:
    """Bytes as text where they are text, else as base64 under a name of its own."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode("ascii")}


def _key(key: object) -> str:
    """A key as text."""
    return _text(key) if isinstance(key, str) else str(_plain(key, _DEEPEST, _Budget(1)))


def _names(event: Event) -> dict[str, Json]:
    """Who, what and where, without the members that are absent."""
    names = {
        "actor": event.actor,
        "cluster": event.cluster,
        "kind": event.kind.value,
        "node": event.node,
        "run": event.run,
        "step": event.step,
    }
    return {key: _short(value) for key, value in names.items() if value is not None}


def _short(name: str) -> str:
    """A name that leaves room for the rest; a longer one ends in its own digest."""
    short = type(name) is str and len(name) < _LONGEST_NAME // 2
    # Escaping at most doubles printable ASCII; nearly every name ends here.
    if short and name.isascii() and name.isprintable():
        return name
    text = _text(name)
    if len(canonical(text)) <= _LONGEST_NAME:
        return text
    mark = hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
    return f"{text[: _LONGEST_NAME // 8]}~{mark}"
