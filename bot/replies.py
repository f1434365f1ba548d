"""What every door may say back: values, rendered by Slack and the command line in their own way."""

from dataclasses import dataclass, field
from enum import StrEnum

from config.ids import RunId
from config.json_values import JsonMap


class ReplyKind(StrEnum):
    """How a request ended."""

    DONE = "done"
    STARTED = "started"
    """A run begins or goes on; its card tells the rest."""
    DENIED = "denied"
    """Not allowed."""
    REFUSED = "refused"
    """Allowed, and cannot be done."""
    MISREAD = "misread"
    """Not understood."""

    @property
    def exit_code(self) -> int:
        """Of the command line: 0 fine, 1 refused, 2 misread, 3 denied."""
        return {"done": 0, "started": 0, "refused": 1, "misread": 2, "denied": 3}[self.value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer. `lines` are plain text and may hold text from outside: the door escapes them."""

    kind: ReplyKind
    lines: tuple[str, ...]
    data: JsonMap = field(default_factory=dict)
    """The same for programs (`--json`)."""
    run: RunId | None = None


def done(*lines: str, data: JsonMap | None = None, run: RunId | None = None) -> Reply:
    """It was done, or here is the answer."""
    return Reply(kind=ReplyKind.DONE, lines=lines, data=data or {}, run=run)


def refused(*lines: str) -> Reply:
    """It cannot be done, and why."""
    return Reply(kind=ReplyKind.REFUSED, lines=lines, data={"error": " ".join(lines)})


def misread(*lines: str) -> Reply:
    """It was not understood."""
    return Reply(kind=ReplyKind.MISREAD, lines=lines, data={"error": " ".join(lines)})
