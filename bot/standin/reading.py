"""Reading messages as people see them: the text of blocks, and the controls in them.

Pure; the vocabulary searches with it and the web page gets its controls from the same blocks.
"""

import re
from collections.abc import Iterator
from typing import Any

from bot.standin.records import (
    Content,
    Payload,
)

Wanted = str | re.Pattern[str]
"""What to look for: a part of the text, or a pattern."""


def seen_text(content: Content) -> str:
    """All that a person can read in one version of a message, line by line."""
    return "\n".join([content.text, *_texts(list(content.blocks))])


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key == "text" and isinstance(inner, str):
                yield inner
            elif key not in {"confirm", "metadata"}:
                yield from _texts(inner)


def matches(wanted: Wanted | None, text: str) -> bool:
    """Whether the text holds what is wanted; None is found in every text."""
    if wanted is None:
        return True
    if isinstance(wanted, str):
        return wanted in text
    return wanted.search(text) is not None


def insist(holds: bool, otherwise: str) -> None:
    """Fail a test with what was there instead; an `assert` would vanish under `python -O`."""
    if not holds:
        raise AssertionError(otherwise)


def controls(blocks: list[Payload]) -> Iterator[Payload]:
    """Every control of the blocks, with the id of its block, as an action payload names it."""
    for block in blocks:
        found = [*block.get("elements", []), block.get("accessory"), block.get("element")]
        for element in found:
            if isinstance(element, dict) and "action_id" in element:
                yield {"block_id": block.get("block_id", ""), **element}


def label(control: Payload) -> str:
    """The words on a control."""
    text = control.get("text") or control.get("placeholder") or {}
    return str(text.get("text", ""))


def button(blocks: list[Payload], words: str) -> Payload:
    """The control with these words on it or with this action id; else an AssertionError."""
    found = list(controls(blocks))
    for control in found:
        if words in (label(control), control["action_id"]):
            return control
    there = ", ".join(repr(label(control)) for control in found) or "none"
    raise AssertionError(f"no control {words!r} here; there are: {there}")
