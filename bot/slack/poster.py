"""Messages as Slack takes them, with a name in their metadata by which they are found again.

Used by `bot.slack.keeper`. Posting is not idempotent: after a call that was not answered, whoever
posts must look with `find` before posting again.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bot.slack.blocks import Content
from bot.slack.courses import Course
from bot.slack.outbox import Outbox
from bot.slack.rates import Priority
from bot.slack.stories import Spot
from bot.slack.web import Answer, Arguments, Said
from config.ids import RunId

log = logging.getLogger(__name__)

EVENT_TYPE = "nodewarden_message"
LOOK_BACK = timedelta(minutes=5)
Check = Callable[[str], Awaitable[None]]
"""Raises Said where nothing may be posted."""
MOST_LOOKED = 200
"""Messages that are looked through for one of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A new message."""

    channel: str
    run: RunId
    note: str
    """Its name within the run."""
    priority: Priority
    thread: str = ""
    broadcast: bool = False


def named(notes: Sequence[str]) -> str:
    """The name of a message that tells several things: each is found in it again."""
    return "\n".join(notes)


def arguments(channel: str, content: Content) -> dict[str, Any]:
    """A message that unfurls nothing and reads nothing into its text."""
    return {
        "channel": channel,
        "text": content.text,
        "blocks": list(content.blocks),
        "unfurl_links": False,
        "unfurl_media": False,
        "parse": "none",
    }


class Poster:
    """Posts, updates and finds the bot's own messages."""

    def __init__(self, outbox: Outbox, looks: Outbox, bot: str, keep_inside: Check) -> None:
        """`looks` carries calls that only read; `keep_inside` refuses a channel where another company
        reads. `bot` is the ledger's instance: another bot in the
        channel may have equal run numbers.
        """
        self._outbox = outbox
        self._looks = looks
        self._keep_inside = keep_inside
        self._bot = bot

    async def post(self, post: Post, make: Callable[[], Awaitable[Content]]) -> Spot:
        """A new message. Raises Said, Unsent, Unanswered."""
        extra: dict[str, Any] = {
            "metadata": {
                "event_type": EVENT_TYPE,
                "event_payload": {"bot": self._bot, "id": post.run, "note": post.note},
            }
        }
        if post.thread:
            extra |= {"thread_ts": post.thread, "reply_broadcast": post.broadcast}
        answer = await self._send("chat.postMessage", post.channel, post.priority, make, extra)
        return Spot(channel=str(answer["channel"]), message=str(answer["ts"]))

    async def update(
        self, spot: Spot, priority: Priority, make: Callable[[], Awaitable[Content]]
    ) -> None:
        """The newest state into the same message. Raises as `post`."""
        await self._send("chat.update", spot.channel, priority, make, {"ts": spot.message})

    async def find(self, post: Post, since: datetime) -> Spot | None:
        """The message of this name, if it was taken after all."""
        there = await self._messages(post.channel, post.thread, since, post.priority)
        for message in there:
            if self._note(message, post.run) == post.note:
                return Spot(channel=post.channel, message=str(message["ts"]))
        return None

    async def notes(
        self, run: RunId, spot: Spot, since: datetime, priority: Priority
    ) -> frozenset[str]:
        """Names of all messages of ours in the thread of a card."""
        messages = await self._messages(spot.channel, spot.message, since, priority)
        found = (self._note(message, run) for message in messages)
        return frozenset(note for notes in found for note in notes.splitlines() if note)

    async def _send(
        self,
        method: str,
        channel: str,
        priority: Priority,
        make: Callable[[], Awaitable[Content]],
        extra: Mapping[str, Any],
    ) -> Answer:
        await self._keep_inside(channel)

        async def compose() -> Arguments:
            return {**arguments(channel, await make()), **extra}

        async def plain() -> Arguments:
            return {**arguments(channel, await make()), **extra, "blocks": []}

        try:
            return await self._outbox.send(method, compose, priority, channel)
        except Said as refusal:
            if refusal.course is not Course.PLAINLY:
                raise
            log.warning("Slack refuses our blocks (%s): %s", refusal.error, refusal.detail)
            return await self._outbox.send(method, plain, priority, channel)

    async def _messages(
        self, channel: str, thread: str, since: datetime, priority: Priority
    ) -> list[Mapping[str, Any]]:
        oldest = f"{(since - LOOK_BACK).timestamp():.6f}"
        wanted = {"channel": channel, "limit": MOST_LOOKED, "include_all_metadata": "1"}
        method = "conversations.replies" if thread else "conversations.history"
        where = {"ts": thread} if thread else {"oldest": oldest}

        async def compose() -> Arguments:
            return {**wanted, **where}

        answer = await self._looks.send(method, compose, priority)
        return list(answer.get("messages", []))

    def _note(self, message: Mapping[str, Any], run: RunId) -> str:
        payload = (message.get("metadata") or {}).get("event_payload") or {}
        ours = payload.get("bot") == self._bot and payload.get("id") == run
        return str(payload.get("note", "")) if ours else ""
