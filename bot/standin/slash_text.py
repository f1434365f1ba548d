"""What Slack makes of the text that a person typed: mentions, links and escapes.

Pure. The interactions call it for commands and messages, so that the bot's parser meets what it
will meet on a real workspace.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

TOP_LEVEL = (
    "ai app at be biz br ca cc ch cloud cn co com cz de dev dk edu es eu fi fr gg gov hu ie il in"
    " info int io it jp kr lan me mil mx net nl no nu online org pl pro pt py ro rs ru se sh site"
    " sk so tech tv ua uk us xyz"
).split()
"""Endings that Slack links; `train.py` and `run.sh` are host names to it, too."""

_HOST = rf"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+(?:{'|'.join(TOP_LEVEL)})"
_TOKEN = re.compile(
    r"(?P<url>https?://[^\s<>]+)"
    rf"|(?P<mail>[\w.+-]+@{_HOST})(?![\w-])"
    r"|(?<![\w@.])@(?P<name>[\w.-]*\w)"
    r"|(?<![\w#])\#(?P<channel>[\w-]+)"
    rf"|(?<![\w@./-])(?P<host>{_HOST}(?:/[^\s<>]*)?)(?![\w.-])"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Whom and what a text can mention: name -> id."""

    users: Mapping[str, str]
    groups: Mapping[str, str]
    channels: Mapping[str, str]


def escape(text: str) -> str:
    """The three characters that Slack escapes, in the order that does not escape twice."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def as_sent(text: str, names: Names) -> str:
    """The text of a payload for what a person typed, with `should_escape` on."""
    parts: list[str] = []
    end = 0
    for match in _TOKEN.finditer(text):
        parts.append(escape(text[end : match.start()]))
        parts.append(_token(match, names))
        end = match.end()
    parts.append(escape(text[end:]))
    return "".join(parts).strip()


def _token(match: re.Match[str], names: Names) -> str:
    kinds: Mapping[str, Callable[[str], str]] = {
        "url": lambda value: f"<{escape(value)}>",
        "mail": lambda value: f"<mailto:{value}|{value}>",
        "name": lambda value: _mention(value, names),
        "channel": lambda value: _channel(value, names),
        "host": lambda value: f"<http://{escape(value)}|{escape(value)}>",
    }
    kind = str(match.lastgroup)
    return kinds[kind](match.group(kind))


def _mention(name: str, names: Names) -> str:
    if name in names.users:
        return f"<@{names.users[name]}|{name}>"
    if name in names.groups:
        return f"<!subteam^{names.groups[name]}|@{name}>"
    if name in {"channel", "here", "everyone"}:
        return f"<!{name}>"
    return f"@{name}"


def _channel(name: str, names: Names) -> str:
    known = names.channels.get(name)
    return f"#{name}" if known is None else f"<#{known}|{name}>"
