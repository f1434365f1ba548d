"""Cards, answers and forms as Slack's blocks: values in, JSON out. Pure; used by every sender.

The one place where text from outside is escaped for Slack, once. Whatever comes in, Slack's sizes
hold afterwards, and no character of it becomes a mention, a link, an emoji or a second line.
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runbooks.explain import Button, Card

Block = dict[str, Any]
"""A JSON object as Slack takes it."""

MOST_TEXT = 2900
"""Characters of `text`: an update refuses 4,000, a screen reader reads far less."""
MOST_SECTION = 2800
"""Slack refuses 3,000; cut after escaping."""
MOST_SECTIONS = 3
"""Together with the rest below the 10,000 that a whole message may hold."""
MOST_HEADER = 150
MOST_LABEL = 75
MOST_VALUE = 2000
MOST_ECHO = 300
MOST_REASON = 300
CONFIRM_TITLE = 100
CONFIRM_TEXT = 300

COMMAND = "command"
"""Action id of a button whose value is a command, before its number."""
ASK_REASON = "reason"
"""Action id of a button that first opens the form for a reason."""
REASON_FORM = "reason-form"
REASON_BLOCK = "reason"
REASON_FIELD = "text"

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "ʼ", "\n": "\\n", "\t": " "}
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_PLAIN = re.compile(r"[ !-%'-;=?-_a-~]*")
"""Printable ASCII without what Slack reads: nearly every line, shown without a look at each character."""
_FENCE = "```\n"
NOTHING = "(no output)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a message shows."""

    text: str
    """The notification, and what a screen reader says."""
    blocks: tuple[Block, ...]


def escaped(text: str, most: int | None = None) -> str:
    """Text from outside as Slack shows it literally, at most `most` characters of Slack's."""
    if _PLAIN.fullmatch(text):
        return text if most is None or len(text) <= most else f"{text[: max(0, most - 1)]}…"
    units = [_unit(character) for character in text]
    if most is None or sum(map(len, units)) <= most:
        return "".join(units)
    kept: list[str] = []
    room = most - 1
    for unit in units:
        if len(unit) > room:
            break
        kept.append(unit)
        room -= len(unit)
    return f"{''.join(kept)}…"


def _told(lines: Sequence[str]) -> str:
    """Lines as the text of a message, which must not be empty."""
    return escaped(" · ".join(line for line in lines if line) or NOTHING, MOST_TEXT)


def _unit(character: str) -> str:
    """One character, whole: an entity, or its escape where it is invisible or steers a renderer."""
    if character in _ENTITIES:
        return _ENTITIES[character]
    if unicodedata.category(character) not in _UNSEEN:
        return character
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def fenced(lines: Sequence[str], most: int = MOST_SECTION) -> tuple[str, int]:
    """As many whole lines as fit into one code block, and how many those are."""
    room = most - 2 * len(_FENCE)
    kept: list[str] = []
    for line in lines:
        shown = escaped(line) if kept else escaped(line, room)
        if kept and len(shown) + 1 > room:
            break
        kept.append(shown)
        room -= len(shown) + 1
    return f"{_FENCE}{chr(10).join(kept) or NOTHING}\n```", len(kept)


def card(shown: Card, note: str = "") -> Content:
    """A run's card; `note` is ours and stands at its foot."""
    revision = shown.revision
    foot = [f"{shown.run} · revision {revision} · details in its thread"]
    blocks = [
        _header(_title(shown), revision),
        *_sections(shown.lines, revision),
        _context(f"foot.{revision}", " · ".join([*foot, escaped(note)] if note else foot)),
        *_actions(shown.buttons, revision),
    ]
    return Content(text=_told([shown.text.strip() or _title(shown)]), blocks=tuple(blocks))


def ring(shown: Card, mention: str, reasons: Sequence[str] = ()) -> Content:
    """A new message that rings phones; `mention` is made of ids and stays as it is."""
    first = f"{mention} {escaped(_title(shown), MOST_HEADER)}".strip()
    why = [reason for reason in reasons if reason]
    lines = [*why, *shown.lines[:2], *shown.lines[2:][-1:]]
    text = f"{first}: {escaped(' · '.join(lines), MOST_TEXT - MOST_SECTION // 2)}"
    blocks = (_mrkdwn(f"ring.{shown.revision}", first), *_sections(lines, shown.revision))
    return Content(text=text, blocks=blocks)


def details(lines: Sequence[str]) -> Content:
    """Steps in the thread."""
    return Content(text=_told(lines), blocks=tuple(_sections(lines, 0)))


def answer(lines: Sequence[str], echo: str = "", buttons: Sequence[Button] = ()) -> Content:
    """What one person is told; `echo` is the command as it was understood."""
    blocks: list[Block] = []
    if echo:
        blocks.append(_context("echo", f"`{escaped(echo, MOST_ECHO)}`"))
    blocks.extend(_sections(lines, 0))
    blocks.extend(_actions(buttons, 0))
    return Content(text=_told(lines), blocks=tuple(blocks))


def form_again(command: str) -> Content:
    """A button with a fresh trigger, where the form came too late."""
    lines = ["the form could not be opened in time: click again"]
    return answer(lines, command, [Button(label="Say why", command=command)])


def reason_form(command: str, channel: str) -> Block:
    """The form that asks why; it carries what the button said."""
    return {
        "type": "modal",
        "callback_id": REASON_FORM,
        "private_metadata": json.dumps({"command": command, "channel": channel}),
        "title": _plain("Say why"),
        "submit": _plain("Send"),
        "close": _plain("Back"),
        "blocks": [
            _section("command", {"type": "plain_text", "text": escaped(command, MOST_ECHO)}),
            {
                "type": "input",
                "block_id": REASON_BLOCK,
                "label": _plain("Reason (it stands in the audit log)"),
                "element": {
                    "type": "plain_text_input",
                    "action_id": REASON_FIELD,
                    "max_length": MOST_REASON,
                },
            },
        ],
    }


def _title(shown: Card) -> str:
    """Slack refuses an empty header."""
    return shown.title.strip() or shown.run


def _header(title: str, revision: int) -> Block:
    text = {"type": "plain_text", "text": escaped(title, MOST_HEADER), "emoji": False}
    return {"type": "header", "block_id": f"title.{revision}", "text": text}


def _sections(lines: Sequence[str], revision: int) -> list[Block]:
    """Lines as code blocks: nothing in them is formatting, and no line is cut in two."""
    left = list(lines) or [NOTHING]
    blocks: list[Block] = []
    while left and len(blocks) < MOST_SECTIONS:
        text, count = fenced(left)
        left = left[count:]
        blocks.append(_mrkdwn(f"lines{len(blocks)}.{revision}", text))
    if left:
        blocks.append(_context(f"more.{revision}", f"… {len(left)} more lines"))
    return blocks


def _actions(buttons: Sequence[Button], revision: int) -> list[Block]:
    """The buttons; one whose command is too long for Slack must be typed."""
    elements = [
        _button(button, number)
        for number, button in enumerate(buttons)
        if len(button.command) <= MOST_VALUE
    ]
    row = {"type": "actions", "block_id": f"do.{revision}", "elements": elements}
    return [row] if elements else []


def _button(button: Button, number: int) -> Block:
    asks = button.command.startswith("deny ")
    element: Block = {
        "type": "button",
        "action_id": f"{ASK_REASON if asks else COMMAND}.{number}",
        "text": _plain(escaped(button.label, MOST_LABEL)),
        "value": button.command,
    }
    if button.danger:
        element["style"] = "danger"
    elif button.command.startswith("approve "):
        element["style"] = "primary"
    if button.confirm:
        element["confirm"] = {
            "title": _plain(escaped(button.label, CONFIRM_TITLE)),
            "text": _plain(escaped(button.confirm, CONFIRM_TEXT)),
            "confirm": _plain(escaped(button.label, 30)),
            "deny": _plain("Cancel"),
        }
    return element


def _context(block_id: str, text: str) -> Block:
    element = {"type": "mrkdwn", "text": text, "verbatim": True}
    return {"type": "context", "block_id": block_id, "elements": [element]}


def _mrkdwn(block_id: str, text: str) -> Block:
    return _section(block_id, {"type": "mrkdwn", "text": text, "verbatim": True})


def _section(block_id: str, text: Block) -> Block:
    return {"type": "section", "block_id": block_id, "text": text}


def _plain(text: str) -> Block:
    return {"type": "plain_text", "text": text, "emoji": False}
