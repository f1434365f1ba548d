"""What follows an acknowledgement: work of its own, whose failure is told with a number.

Used by `bot.slack.listeners`: Bolt acknowledges when a listener returns, so whatever Slack need not
wait for is begun here. Nothing that must survive a kill may be done here alone.
"""

import asyncio
import logging
import secrets
from collections.abc import Coroutine
from typing import Any

from bot.replies import refused
from bot.slack.answering import Answering
from bot.slack.asks import Ask
from bot.slack.clerk import shown

log = logging.getLogger(__name__)


class Afterwards:
    """Tasks in the event loop."""

    def __init__(self, answering: Answering) -> None:
        """Nothing is under way."""
        self._answering = answering
        self._under_way: set[asyncio.Task[None]] = set()

    def begin(self, ask: Ask | None, work: Coroutine[Any, Any, None]) -> None:
        """Do this once the listener has returned."""
        task = asyncio.create_task(self._guarded(ask, work))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def failed(self, ask: Ask | None, error: Exception) -> None:
        """An error in our own code: into the log, and its number to whoever asked."""
        number = secrets.token_hex(4)
        log.error("error %s at the Slack door", number, exc_info=error)
        if ask is not None and ask.user:
            text = f"the bot failed at this (error {number}); whether it was done, `status` shows"
            await self._answering.tell(ask, shown(refused(text)).content)

    async def close(self) -> None:
        """Give up what is under way."""
        work = list(self._under_way)
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)

    async def _guarded(self, ask: Ask | None, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as problem:  # noqa: BLE001 - nobody else would hear of it
            await self.failed(ask, problem)
