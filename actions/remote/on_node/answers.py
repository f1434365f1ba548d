"""What a verb gives back: an exit code, and texts for the two outputs."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """Exit code and outputs of one verb."""

    code: int
    out: str = ""
    err: str = ""


def plain(value: object) -> Answer:
    """A structured answer: one line of JSON, so that no text from outside can pass for a field."""
    return Answer(0, json.dumps(value, sort_keys=True) + "\n")
