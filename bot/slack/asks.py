"""What somebody said or clicked in Slack, as a value. Pure: reads payloads, nothing else.

Names in payloads are never used for identity or rights; ids are (slack.md 1.6, 1.9).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.phrases import straighten

Payload = Mapping[str, Any]

RUN_VERBS = frozenset("abort pause resume approve deny takeover status".split())
"""In the thread of a run's card these mean that run when no other is named."""
_NAMES_RUN = re.compile(r"(?:run-)?\d+(?:\s|$)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One thing that somebody wants."""

    team: str
    user: str
    channel: str
    text: str
    key: str
    """The same key is the same act: Slack may deliver it twice."""
    response_url: str = ""
    thread: str = ""
    shared: bool = False
    """The channel is shared with another workspace, as far as the payload says."""
    clicked: bool = False
    at_card: bool = False
    """On the card of a run, or in its thread."""

    @property
    def direct(self) -> bool:
        """Whether nobody else sees it being said."""
        return self.channel.startswith("D")


def from_command(body: Payload) -> Ask:
    """A slash command."""
    return Ask(
        team=str(body.get("team_id", "")),
        user=str(body.get("user_id", "")),
        channel=str(body.get("channel_id", "")),
        text=str(body.get("text") or ""),
        key=str(body.get("trigger_id", "")),
        response_url=str(body.get("response_url", "")),
    )


def from_click(body: Payload, text: str) -> Ask:
    """A click, with the command that the button says."""
    user = body.get("user") or {}
    container = body.get("container") or {}
    return Ask(
        team=str(user.get("team_id") or (body.get("team") or {}).get("id", "")),
        user=str(user.get("id", "")),
        channel=str(container.get("channel_id", "")),
        text=text,
        key=str(body.get("trigger_id", "")),
        response_url=str(body.get("response_url") or ""),
        clicked=True,
        at_card=True,
    )


def from_form(body: Payload, channel: str, text: str) -> Ask:
    """A form that was sent off."""
    view = body.get("view") or {}
    user = body.get("user") or {}
    return Ask(
        team=str(user.get("team_id") or (body.get("team") or {}).get("id", "")),
        user=str(user.get("id", "")),
        channel=channel,
        text=text,
        key=f"view {view.get('id', '')} {view.get('hash', '')}",
        clicked=True,
        at_card=True,
    )


def from_message(body: Payload, bot_user: str) -> Ask | None:
    """A mention or a direct message; None for what is no command (quotes, code, edits, bots)."""
    event = body.get("event") or {}
    if event.get("subtype") or event.get("bot_id") or event.get("edited") or not event.get("user"):
        return None
    text = str(event.get("text") or "")
    if "```" in text or _quoted(text, bot_user):
        return None
    return Ask(
        team=str(event.get("team") or body.get("team_id", "")),
        user=str(event["user"]),
        channel=str(event.get("channel", "")),
        text=re.sub(rf"<@{re.escape(bot_user)}(?:\|[^<>]*)?>", " ", text).strip(),
        key=str(body.get("event_id", "")),
        thread=str(event.get("thread_ts") or ""),
        shared=bool(body.get("is_ext_shared_channel")),
    )


def _quoted(text: str, bot_user: str) -> bool:
    """Whether the bot is named within a quotation, or the whole text is one."""
    lines = text.splitlines() or [""]
    asked = [line for line in lines if f"<@{bot_user}" in line] or lines[:1]
    return any(line.lstrip().startswith(("&gt;", ">")) for line in asked)


def about_run(text: str, run: str) -> str:
    """Words said in the thread of a run's card: a verb without a run means that one."""
    verb, _, rest = straighten(text).partition(" ")
    if verb.lower() in RUN_VERBS and not _NAMES_RUN.match(rest.lstrip()):
        return f"{verb} {run} {rest}".strip()
    return text


def names_run(text: str, run: str) -> bool:
    """Whether these words are about that run and no other."""
    verb, named, *_ = [*straighten(text).split(), "", ""]
    return verb.lower() in RUN_VERBS and named in {run, run.removeprefix("run-")}
