"""Pages as new messages with a mention. Past every queue: a page never waits for cards.

Set into `bot.slack.mention` while the door is open; called from the pager's threads.
"""

import asyncio
from collections import OrderedDict
from concurrent.futures import TimeoutError as TooLate
from datetime import timedelta

from actions.catalogue import MaybeAccepted, NotAccepted
from bot.slack.poster import Check
from bot.slack.web import Arguments, Limited, Said, Unanswered, Unsent, Web
from config.settings import PageBackend

MOST_KEYS = 1000
VEILED = (
    "Nodewarden has a page. Another workspace may read this channel: `status` tells what it is."
)
LONGEST_CHECK = 1.5
"""Seconds that a page waits to hear who reads its channel."""


class Pages:
    """Posts pages; a repeat of one goes into the thread of the first."""

    def __init__(self, web: Web, keep_inside: Check, loop: asyncio.AbstractEventLoop) -> None:
        """`keep_inside` refuses a channel where another company reads; `loop` is the door's."""
        self._web = web
        self._keep_inside = keep_inside
        self._loop = loop
        self._first: OrderedDict[tuple[str, str], str] = OrderedDict()

    def send(self, backend: PageBackend, text: str, key: str, limit: timedelta) -> str:
        """Where the page stands. Raises NotAccepted, MaybeAccepted."""
        work = asyncio.run_coroutine_threadsafe(self._post(backend, text, key), self._loop)
        try:
            return work.result(limit.total_seconds())
        except (Said, Limited, Unsent) as problem:
            raise NotAccepted(f"Slack did not take it: {problem}") from problem
        except (Unanswered, TooLate) as problem:
            work.cancel()
            raise MaybeAccepted("Slack gave no answer") from problem

    async def _post(self, backend: PageBackend, text: str, key: str) -> str:
        mention = f"<!subteam^{backend.mention}>" if backend.mention else "<!channel>"
        body: dict[str, object] = {
            "channel": backend.channel,
            "text": f"{mention} {await self._shown(str(backend.channel), text)}",
            "unfurl_links": False,
            "unfurl_media": False,
        }
        name = (str(backend.channel), key)
        if name in self._first:
            body |= {"thread_ts": self._first[name], "reply_broadcast": True}
        posted = await self._posted(body)
        self._first.setdefault(name, posted)
        if len(self._first) > MOST_KEYS:
            self._first.popitem(last=False)
        return f"{backend.channel}/{posted}"

    async def _shown(self, channel: str, text: str) -> str:
        """The text, unless another company may read it: a page still wakes people there."""
        try:
            await asyncio.wait_for(self._keep_inside(channel), LONGEST_CHECK)
        except (Said, Limited, Unsent, Unanswered, TimeoutError):
            return VEILED
        return text

    async def _posted(self, body: Arguments) -> str:
        answer = await self._web.call("chat.postMessage", body)
        return str(answer["ts"])
