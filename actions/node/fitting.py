"""Cuts text from outside to the room it may take in a record of the ledger, which is ASCII. Pure.

Used wherever an output of this area carries such text: one record holds 8 KiB (design 4), and one
character can take twelve bytes there.
"""

import json
from itertools import accumulate


def first(text: str, room: int) -> str:
    """As much of the beginning as fits."""
    return text[: _fits(text[:room], room)]


def last(text: str, room: int) -> str:
    """As much of the end as fits: the end of a log is what counts."""
    tail = text[-room:]
    count = _fits(tail[::-1], room)
    return tail[len(tail) - count :]


def _fits(text: str, room: int) -> int:
    """How many of the characters take no more than `room` bytes once written."""
    if len(json.dumps(text)) - 2 <= room:
        return len(text)
    sizes = accumulate(len(json.dumps(character)) - 2 for character in text)
    return sum(1 for size in sizes if size <= room)
