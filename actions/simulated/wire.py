"""What passes between `client` and `server`: one JSON line there, two back. Pure.

The answer's first line says how it went, the second is the value, so that a large value is read once
and by the type that it must have.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from pydantic import TypeAdapter

from actions.contract import (
    Refusal,
    Rejected,
    UnknownJob,
    UnknownNode,
    Unreadable,
    WriteUnknown,
)
from config.redaction import Redactor

LARGEST_REQUEST = 1 << 23
"""A question to 20,000 nodes whose names are as long as names may be is some 5 MB."""
LARGEST_ANSWER = 1 << 28
"""A snapshot of 20,000 nodes and 50,000 jobs is some 50 MB."""


class Sort(StrEnum):
    """What a request is."""

    READ = "read"
    WRITE = "write"
    PLUG = "plug"
    STAGE = "stage"
    """For whoever directs the play: time, prepared faults and foreign acts, the list of effects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call."""

    sort: Sort
    verb: str
    arguments: dict[str, object] = field(default_factory=dict)
    caller: str = ""
    limit: timedelta = timedelta(seconds=5)


ERRORS: Mapping[str, type[Exception]] = {
    "unreadable": Unreadable,
    "rejected": Rejected,
    "unknown_node": UnknownNode,
    "unknown_job": UnknownJob,
    "refusal": Refusal,
    "write_unknown": WriteUnknown,
    "bad_request": ValueError,
}
"""Errors that cross the wire; they are raised again at the caller's side."""

_REQUEST = TypeAdapter(Request)


def encode_request(request: Request) -> bytes:
    """One line; text that is not UTF-8 has its bytes written out."""
    return _REQUEST.dump_json(request) + b"\n"


def decode_request(line: bytes) -> Request:
    """The request of a line. Raises ValueError."""
    return _REQUEST.validate_json(line)


def encode_answer(value: bytes) -> bytes:
    """Success, and the value's JSON."""
    return b'{"error": ""}\n' + value + b"\n"


def encode_error(error: Exception) -> bytes:
    """Failure, as the nearest kind in ERRORS."""
    kind = next((name for name, sort in ERRORS.items() if isinstance(error, sort)), "bad_request")
    return json.dumps({"error": kind, "message": str(error)}).encode() + b"\n"


def decode_answer(answer: bytes) -> bytes:
    """The value's JSON. Raises the error that the answer carries, or ValueError when it is cut."""
    head, _, rest = answer.partition(b"\n")
    verdict = json.loads(head)
    if verdict["error"]:
        raise ERRORS[verdict["error"]](verdict["message"])
    if not rest.endswith(b"\n"):
        raise ValueError("the answer of the simulated cluster was cut off")
    return rest


def masked(value: bytes, redactor: Redactor) -> bytes:
    """The value's JSON with every secret in it masked, as the shell does it for a real cluster."""
    text = value.decode()
    if redactor.is_clean(text):
        return value
    return json.dumps(redactor.values({"value": json.loads(text)})["value"]).encode()


def clean(text: str) -> str:
    """Text that JSON can carry: lone surrogates from undecodable bytes are written out."""
    return text.encode("utf-8", "backslashreplace").decode()
