"""A run's card as it stands in the stand-in for Slack: read from the blocks that a person sees."""

import html
from dataclasses import dataclass

from bot.standin.vocabulary import Message

RESTING = "✔✘✋🆘■↩⏸"
"""First character of a card's title when nothing goes on by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCard:
    """What stands there."""

    title: str
    lines: tuple[str, ...]
    buttons: tuple[str, ...]

    @property
    def rests(self) -> bool:
        """Whether the run waits for nobody but people."""
        return self.title[:1] in RESTING


def card_in(message: Message) -> ShownCard:
    """The newest version of the card."""
    title, lines = "", []
    for block in message.blocks:
        words = html.unescape(str((block.get("text") or {}).get("text", "")))
        if block["type"] == "header":
            title = words
        elif block["type"] == "section":
            lines += [line for line in words.splitlines() if line and line != "```"]
    return ShownCard(title=title, lines=tuple(lines), buttons=message.buttons)
