"""What the sandbox prints: plain sentences with their times, the card as it changes, a table at the
end.

Text from the cluster is never read as markup.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Protocol

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from bot.sandbox.shown_card import ShownCard

CARD_WIDTH = 84


class Told(Protocol):
    """A finding of the demo."""

    @property
    def claim(self) -> str:
        """What must hold."""
        ...

    @property
    def holds(self) -> bool:
        """Whether it does."""
        ...

    @property
    def seen(self) -> str:
        """What was seen."""
        ...


class Screen:
    """A terminal, or a file."""

    def __init__(self, console: Console) -> None:
        """Prints to this console."""
        self._console = console

    @property
    def is_terminal(self) -> bool:
        """Whether a person looks at it."""
        return self._console.is_terminal

    def say(self, text: str = "") -> None:
        """A sentence."""
        self._console.print(Text(text), soft_wrap=True)

    def busy(self, text: str) -> AbstractContextManager[object]:
        """A sentence that turns while something takes time."""
        if not self.is_terminal:
            self.say(text)
        return self._console.status(Text(text))

    def line(self, since: timedelta, text: str) -> None:
        """A sentence with its time."""
        self.say(f"{_seconds(since)}  {text}")

    def card(self, card: ShownCard) -> None:
        """The card as it stands in Slack now."""
        buttons = "   ".join(f"[{words}]" for words in card.buttons)
        body = "\n".join([*card.lines, *([buttons] if buttons else [])])
        self._console.print(
            Panel(Text(body), title=Text(card.title), title_align="left", width=CARD_WIDTH)
        )

    def table(self, done: Sequence[tuple[timedelta, str]], found: Sequence[Told]) -> None:
        """What happened when, and what holds afterwards."""
        self.say("\nWhat happened")
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column(justify="right", no_wrap=True)
        table.add_column()
        for since, what in done:
            table.add_row(_seconds(since), Text(what))
        for finding in found:
            sign = "yes" if finding.holds else "NO"
            table.add_row(sign, Text(f"{finding.claim}: {finding.seen}"))
        self._console.print(table)


def _seconds(since: timedelta) -> str:
    return f"{since.total_seconds():6.1f} s"
