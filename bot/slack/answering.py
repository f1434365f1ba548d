"""How an answer reaches the one person who asked: response url, ephemeral, direct message.

Used by `bot.slack.listeners`. Each way can fail without anybody being told by Slack, so each is
checked, and the next one is taken.
"""

import asyncio
import logging

from bot.slack.asks import Ask
from bot.slack.blocks import Content
from bot.slack.courses import Course
from bot.slack.outbox import Outbox
from bot.slack.poster import arguments
from bot.slack.rates import Priority
from bot.slack.web import Arguments, Said, Unanswered, Unsent, Web

log = logging.getLogger(__name__)

AT_ONCE = 16
"""Answers that are on their way to Slack at the same time: those of a crowd must not keep the event
loop from acknowledging what the crowd says next."""


class Answering:
    """Answers to one person."""

    def __init__(self, web: Web, outbox: Outbox) -> None:
        """Sends through both: a response url is no method and has no lane."""
        self._web = web
        self._outbox = outbox
        self._room = asyncio.Semaphore(AT_ONCE)

    async def tell(self, ask: Ask, content: Content) -> None:
        """Show it to the person; a failure of every way stands in the log."""
        if ask.response_url:
            async with self._room:
                shown = await self._web.respond(ask.response_url, _beside(content))
            if shown:
                return
        try:
            await self._without_url(ask, content)
        except (Said, Unsent, Unanswered) as problem:
            log.warning("an answer reached nobody: %s", problem)

    async def _without_url(self, ask: Ask, content: Content) -> None:
        if ask.direct or not ask.channel:
            await self._post(ask.channel or ask.user, content, ask.thread)
            return
        try:
            await self._ephemeral(ask, content)
        except Said as refusal:
            if refusal.course not in {Course.DIRECTLY, Course.ELSEWHERE}:
                raise
            await self._post(ask.user, content, "")

    async def _ephemeral(self, ask: Ask, content: Content) -> None:
        async def compose() -> Arguments:
            thread = {"thread_ts": ask.thread} if ask.thread else {}
            return {**arguments(ask.channel, content), "user": ask.user, **thread}

        await self._outbox.send("chat.postEphemeral", compose, Priority.APPROVAL, ask.channel)

    async def _post(self, channel: str, content: Content, thread: str) -> None:
        async def compose() -> Arguments:
            extra = {"thread_ts": thread} if thread else {}
            return {**arguments(channel, content), **extra}

        await self._outbox.send("chat.postMessage", compose, Priority.FAILURE, channel)


def _beside(content: Content) -> dict[str, object]:
    """The body of an answer through a response url: beside the message that was clicked."""
    return {**privately(content), "replace_original": False}


def privately(content: Content) -> dict[str, object]:
    """What an acknowledgement shows, to the person alone."""
    return {
        "response_type": "ephemeral",
        "text": content.text,
        "blocks": list(content.blocks),
    }
