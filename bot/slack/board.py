"""Watches the ledger for news of runs, and keeps a keeper at work for each card that is not done.

Started by `bot.slack.door`; everything that reads or commits runs in threads of its own.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TypeVar

from audit_log.errors import StoreError
from bot.diagnostics import Finding
from bot.slack.keeper import Keeper, Pace, Tools
from bot.slack.poster import Poster
from bot.slack.stories import Spot, Stories, Story
from config.ids import RunId

log = logging.getLogger(__name__)

T = TypeVar("T")
READERS = 4
MOST_NAMED = 3
"""Cards that are named where they cannot be shown."""
AFTER_FAILURE = 5.0
"""Seconds until a keeper that failed in our own code is tried again."""


class Board:
    """All cards; lives in the event loop."""

    def __init__(self, stories: Stories, poster: Poster, pace: Pace, opened_at: datetime) -> None:
        """Looks at nothing before `run`."""
        self._stories = stories
        self._opened_at = opened_at
        self._pace = pace
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="slack-board")
        self._keepers: dict[RunId, Keeper] = {}
        self._work: dict[RunId, asyncio.Task[None]] = {}
        self._tools = Tools(
            read=self._read,
            record_posted=self._record_posted,
            record_told=self._record_told,
            poster=poster,
            pace=pace,
            active=lambda: len(self._keepers),
            opened_at=opened_at,
        )

    def findings(self) -> tuple[Finding, ...]:
        """For `doctor`: one line, however many cards cannot be shown."""
        missing = {run: keeper.trouble for run, keeper in list(self._keepers.items())}
        oldest = sorted((run for run, why in missing.items() if why), key=_number)
        if not oldest:
            return ()
        reasons = "; ".join(missing[run] for run in oldest[:MOST_NAMED])
        what = "1 card is" if len(oldest) == 1 else f"{len(oldest)} cards are"
        beginning = "" if len(oldest) <= MOST_NAMED else "the oldest: "
        return (Finding(False, f"Slack: {what} not shown: {beginning}{reasons}"),)

    async def run(self) -> None:
        """Look for news until cancelled."""
        since = await self._off(self._stories.head)
        for run in await self._off(lambda: self._stories.unfinished(self._opened_at)):
            self._wake(run)
        while True:
            try:
                since = await self._look(since)
            except StoreError as problem:
                log.warning("the board cannot read the ledger: %s", problem)
            await asyncio.sleep(self._pace.look)

    async def _look(self, since: int) -> int:
        """Wake the keepers of runs with news; the record up to which was looked."""
        head, runs = await self._off(lambda: self._stories.changed(since))
        for run in runs:
            self._wake(run)
        return head

    def refresh(self, run: RunId) -> None:
        """Somebody clicked: show what is so now."""
        self._wake(run)

    async def close(self) -> None:
        """Send nothing more; what is not shown yet is shown after the next start."""
        work = list(self._work.values())
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        self._threads.shutdown(wait=False)

    def _wake(self, run: RunId) -> None:
        keeper = self._keepers.get(run)
        if keeper is None:
            keeper = self._keepers[run] = Keeper(run, self._tools)
            self._work[run] = asyncio.create_task(self._keep(run, keeper))
        keeper.wake()

    async def _keep(self, run: RunId, keeper: Keeper) -> None:
        try:
            while True:
                try:
                    await keeper.keep()
                    return
                except Exception:  # one card must not end the others
                    log.exception("the card of %s failed in the bot's own code", run)
                    await asyncio.sleep(AFTER_FAILURE)
        finally:
            with contextlib.suppress(KeyError):
                del self._keepers[run], self._work[run]

    async def _read(self, run: RunId) -> Story | None:
        return await self._off(lambda: self._stories.story(run))

    async def _record_posted(self, run: RunId, spot: Spot) -> None:
        await self._off(lambda: self._stories.record_posted(run, spot))

    async def _record_told(self, run: RunId, notes: Sequence[str]) -> None:
        await self._off(lambda: self._stories.record_told(run, notes))

    async def _off(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _number(run: RunId) -> int:
    return int(run.removeprefix("run-"))
