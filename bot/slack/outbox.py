"""Everything that the bot says in Slack leaves through here, in the order of its urgency.

One lane for each method (and channel, where Slack counts by channel); in a lane one call is under
way at a time. A letter is composed when its turn comes, so what goes out is the newest state. Slack's
429 closes its lane and no other. It knows no runs and stores nothing: who hands in a letter waits
for its answer and decides what a failure means.
"""

import asyncio
import contextlib
import heapq
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from bot.slack.rates import RATES, Bucket, Priority, Rate
from bot.slack.web import Answer, Arguments, Limited

Compose = Callable[[], Awaitable[Arguments]]
"""Makes the arguments of a call when its turn has come."""
Call = Callable[[str, Arguments], Awaitable[Answer]]

UNLIMITED = Rate(per_minute=6000, burst=100)
BY_CHANNEL = "chat.postMessage"


@dataclass(order=True, slots=True)
class _Letter:
    priority: Priority
    number: int
    method: str = field(compare=False)
    compose: Compose = field(compare=False)
    answer: "asyncio.Future[Answer]" = field(compare=False)


@dataclass(slots=True)
class _Lane:
    bucket: Bucket
    waiting: list[_Letter] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    work: "asyncio.Task[None] | None" = None


class Outbox:
    """Lanes of letters; lives in the event loop."""

    def __init__(self, call: Call) -> None:
        """Sends nothing by itself."""
        self._call = call
        self._lanes: dict[str, _Lane] = {}
        self._numbers = itertools.count()

    async def send(
        self, method: str, compose: Compose, priority: Priority, channel: str = ""
    ) -> Answer:
        """Wait for the turn, send, and give Slack's answer. Raises Said, Unsent, Unanswered."""
        lane = self._lane(method, channel)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        letter = _Letter(priority, next(self._numbers), method, compose, answer)
        heapq.heappush(lane.waiting, letter)
        lane.news.set()
        if lane.work is None or lane.work.done():
            lane.work = asyncio.create_task(self._empty(lane))
        return await answer

    async def close(self) -> None:
        """Send nothing more."""
        work = [lane.work for lane in self._lanes.values() if lane.work is not None]
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        for lane in self._lanes.values():
            for letter in lane.waiting:
                letter.answer.cancel()

    def _lane(self, method: str, channel: str) -> _Lane:
        name = f"{method} {channel}" if method == BY_CHANNEL else method
        lane = self._lanes.get(name)
        if lane is None:
            rate = RATES.get(method, UNLIMITED)
            lane = self._lanes[name] = _Lane(bucket=Bucket(rate, _now()))
        return lane

    async def _empty(self, lane: _Lane) -> None:
        """Send what waits, the most urgent first, until nothing does."""
        while lane.waiting:
            if lane.waiting[0].answer.done():
                heapq.heappop(lane.waiting)  # whoever wanted it is gone
                continue
            pause = lane.bucket.wait(lane.waiting[0].priority, _now())
            if pause > 0:
                lane.news.clear()
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(lane.news.wait(), pause)
                continue
            await self._deliver(lane, heapq.heappop(lane.waiting))

    async def _deliver(self, lane: _Lane, letter: _Letter) -> None:
        try:
            arguments = await letter.compose()
            lane.bucket.take(_now())
            answer = await self._call(letter.method, arguments)
        except Limited as limit:
            lane.bucket.close(limit.seconds, _now())
            heapq.heappush(lane.waiting, letter)
        except asyncio.CancelledError:
            letter.answer.cancel()
            raise
        except Exception as problem:  # noqa: BLE001 - whatever it is, the one who waits must hear of it
            if not letter.answer.done():
                letter.answer.set_exception(problem)
        else:
            if not letter.answer.done():
                letter.answer.set_result(answer)


def _now() -> float:
    return asyncio.get_running_loop().time()
