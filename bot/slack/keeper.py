"""Keeps the card of one run: posts it once, updates it in place, tells its steps in the thread.

Made by `bot.slack.board`, one for each run that still has something to show. A state that must ring
is a new message in the thread; what was told is recorded, so that a restart tells nothing twice.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from audit_log.errors import StoreError
from bot.slack import blocks
from bot.slack.blocks import Content
from bot.slack.courses import Course
from bot.slack.poster import Post, Poster, named
from bot.slack.rates import Priority
from bot.slack.rings import Ring
from bot.slack.stories import FINAL_SHOWN, Spot, Story
from bot.slack.web import Limited, Said, Unanswered, Unsent
from config.ids import RunId
from runbooks.explain import Card
from runbooks.machine import RunState

log = logging.getLogger(__name__)

CARD = "card"
"""Note of the card itself."""
MOST_REPOSTS = 1
"""A card that somebody deletes is posted once more, not for ever."""
LOOKING = 60.0
"""Seconds between two turns while an earlier thread is still being read; its answer wakes sooner."""
MOST_AT_ONCE = 8
"""Steps in one message of the thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often, in seconds."""

    look: float = 0.3
    """Between two looks for news."""
    update: float = 3.0
    """Between two updates of one card that is not urgent."""
    crowded: float = 5.0
    """The same above `crowd` active cards."""
    crowd: int = 10
    first_pause: float = 1.0
    """After the first call that failed; doubled up to the longest."""
    longest_pause: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What every keeper uses."""

    read: Callable[[RunId], Awaitable[Story | None]]
    record_posted: Callable[[RunId, Spot], Awaitable[None]]
    record_told: Callable[[RunId, Sequence[str]], Awaitable[None]]
    poster: Poster
    pace: Pace
    active: Callable[[], int]
    """How many cards are kept at present."""
    opened_at: datetime
    """Messages about older runs may have been posted before the restart."""


class Keeper:
    """One run's messages."""

    def __init__(self, run: RunId, tools: Tools) -> None:
        """Sends nothing before `keep`."""
        self.trouble = ""
        """Why the card is not shown, for `doctor`; empty when it is."""
        self._run = run
        self._tools = tools
        self._news = asyncio.Event()
        self._spot: Spot | None = None
        self._shown: Card | None = None
        self._updated_at = 0.0
        self._doubtful: set[str] = set()
        self._known: set[str] = set()
        self._recalled = False
        self._look: asyncio.Task[frozenset[str]] | None = None
        self._unsure = False
        """Whether replies may stand in the thread of which the ledger knows nothing."""
        self._recorded: Spot | None = None
        self._unrecorded: list[str] = []
        self._closed: set[str] = set()
        self._reposts = 0
        self._lost = False
        self._pause = tools.pace.first_pause

    def wake(self) -> None:
        """There is news."""
        self._news.set()

    async def keep(self) -> None:
        """Go on until the final state is shown and Slack has confirmed it."""
        while True:
            self._news.clear()
            rest, finished = await self._turn()
            if finished:
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), rest)

    async def _turn(self) -> tuple[float | None, bool]:
        """Show what is new: seconds until the next turn (None: at the next news), and whether the
        last state is shown.
        """
        final = False
        try:
            story = await self._tools.read(self._run)
            if story is None:
                return None, True
            final = story.card.state.final
            if not self._recalled:
                self._recall(story)
                self._recalled = True
            await self._record()
            rest = await self._show(story)
        except (Said, Unsent, Unanswered, Limited, StoreError) as problem:
            return self._failed(problem), False
        self._pause, self.trouble = self._tools.pace.first_pause, ""
        return rest, rest is None and final

    def _recall(self, story: Story) -> None:
        """What was posted before this process began, also where it was not recorded any more."""
        self._spot = self._recorded = story.spot
        self._known = set(story.told)
        if story.asked_at >= self._tools.opened_at:
            return
        if story.spot is None:
            self._doubtful.add(CARD)
        else:
            self._unsure = True

    async def _sure(self, story: Story) -> bool:
        """Whether all that stands in the thread is known. Slack may let the bot wait long for that;
        the card itself goes on meanwhile, and only new replies are held back.
        """
        if self._unsure and self._look is None and self._spot is not None:
            work = self._tools.poster.notes(
                self._run, self._spot, story.asked_at, _priority(story.card)
            )
            self._look = asyncio.create_task(work)
            self._look.add_done_callback(lambda _: self.wake())
        if self._look is None or not self._look.done():
            return not self._unsure
        look, self._look = self._look, None
        with contextlib.suppress(Said):  # a card that is gone is found out by its update
            unrecorded = sorted(look.result() - self._known - {CARD})
            if unrecorded:
                await self._tell_ledger(unrecorded)
        self._unsure = False
        return True

    async def _record(self) -> None:
        """What was posted and could not be recorded then: a full disk must not post it twice."""
        if self._spot is not None and self._spot != self._recorded:
            await self._tools.record_posted(self._run, self._spot)
            self._recorded = self._spot
        if self._unrecorded:
            await self._tools.record_told(self._run, tuple(self._unrecorded))
            self._unrecorded.clear()

    async def _show(self, story: Story) -> float | None:
        """Send what is not shown yet; seconds until more may be sent, None when all is shown."""
        if self._unwanted(story):
            await self._done(story)
            return None
        if self._spot is None:
            await self._post_card(story)
        rest = self._rest(story)
        if rest == 0:
            await self._update(self._spot or await self._post_card(story), story)
        if not await self._sure(story):
            return rest or LOOKING
        await self._ring(story)
        more = await self._tell(story)
        if rest:
            return rest
        if more:
            return 0.0
        await self._done(story)
        return story.again

    async def _done(self, story: Story) -> None:
        """All is shown; the last state is never looked at again."""
        if story.card.state.final and FINAL_SHOWN not in self._known:
            await self._tell_ledger([FINAL_SHOWN])

    def _unwanted(self, story: Story) -> bool:
        """Whether people deleted the card again and again, and nobody is needed now."""
        if self._lost and self._unrung(story):
            self._lost, self._spot = False, None
        return self._lost

    def _rest(self, story: Story) -> float | None:
        """Seconds until the card may be updated; None when it shows this state already."""
        if self._shown == _face(story.card):
            return None
        urgent = story.card.state.final or self._unrung(story)
        if urgent or self._shown is None:
            return 0.0
        pace = self._tools.pace
        interval = pace.crowded if self._tools.active() > pace.crowd else pace.update
        return max(0.0, self._updated_at + interval - _now())

    async def _post_card(self, story: Story) -> Spot:
        """Post the card in the first channel that takes it."""
        note = "the earlier card is gone" if self._reposts else ""
        for channel in story.channels:
            if channel in self._closed:
                continue
            post = self._named(story, CARD, Spot(channel=channel, message=""))
            try:
                spot = await self._once(post, story, self._newest(story, note))
            except Said as refusal:
                if refusal.course is not Course.ELSEWHERE:
                    raise
                log.warning("the card of %s cannot stand in %s: %s", self._run, channel, refusal)
                self._closed.add(channel)
                continue
            self._spot = spot
            await self._record()
            return spot
        self._closed.clear()
        raise Said("channel_not_found", "no channel takes the card; set clusters.*.channel")

    async def _update(self, spot: Spot, story: Story) -> None:
        """The first update follows the post at once: it brings the cause."""
        await self._tools.poster.update(spot, _priority(story.card), self._newest(story))
        self._updated_at = _now()

    def _newest(self, story: Story, note: str = "") -> Callable[[], Awaitable[Content]]:
        """The card as it is when its turn to be sent comes."""

        async def make() -> Content:
            now = await self._tools.read(self._run) or story
            self._shown = _face(now.card)
            return blocks.card(now.card, note)

        return make

    async def _ring(self, story: Story) -> None:
        """A new message with a mention: an edit rings no phone. All that rings now is one message."""
        new = self._unrung(story)
        if new:
            content = blocks.ring(story.card, story.mention, [ring.line for ring in new])
            await self._reply(story, [ring.note for ring in new], content, rings=True)

    def _unrung(self, story: Story) -> tuple[Ring, ...]:
        return tuple(ring for ring in story.rings if ring.note not in self._known)

    async def _tell(self, story: Story) -> bool:
        """The next steps that ended, as one reply; whether there are more."""
        new = [(note, line) for note, line in story.details if note not in self._known]
        if new:
            part = new[:MOST_AT_ONCE]
            content = blocks.details([line for _, line in part])
            await self._reply(story, [note for note, _ in part], content, rings=False)
        return len(new) > MOST_AT_ONCE

    async def _reply(
        self, story: Story, notes: Sequence[str], content: Content, *, rings: bool
    ) -> None:
        if self._spot is None:
            return

        async def make() -> Content:
            return content

        post = replace(self._named(story, named(notes), self._spot), broadcast=rings)
        if rings:
            post = replace(post, priority=Priority.APPROVAL)
        await self._once(post, story, make)
        await self._tell_ledger(notes)

    async def _once(self, post: Post, story: Story, make: Callable[[], Awaitable[Content]]) -> Spot:
        """Post, and after an answer that never came look before posting again."""
        if post.note in self._doubtful:
            found = await self._tools.poster.find(post, story.asked_at)
            if found is not None:
                self._doubtful.discard(post.note)
                return found
        self._doubtful.discard(post.note)
        try:
            return await self._tools.poster.post(post, make)
        except Unanswered:
            self._doubtful.add(post.note)
            self._shown = None
            raise

    def _named(self, story: Story, note: str, spot: Spot) -> Post:
        return Post(
            channel=spot.channel,
            run=self._run,
            note=note,
            priority=_priority(story.card),
            thread=spot.message,
        )

    async def _tell_ledger(self, notes: Sequence[str]) -> None:
        self._known.update(notes)
        self._unrecorded.extend(notes)
        await self._record()

    def _failed(self, problem: Said | Unsent | Unanswered | Limited | StoreError) -> float:
        """What a failure means for this card; seconds until the next try."""
        self._shown = None
        self.trouble = f"{self._run}: {problem}"
        if isinstance(problem, Said) and self._spot is not None:
            if problem.course is Course.AGAIN:
                self._lost = self._reposts >= MOST_REPOSTS
                return self._leave(self._spot if self._lost else None)
            if problem.course is Course.ELSEWHERE:
                self._closed.add(self._spot.channel)
                return self._leave(None)
        pause, longest = self._pause, self._tools.pace.longest_pause
        if isinstance(problem, Limited):
            return problem.seconds
        if isinstance(problem, Said) and problem.course in {Course.STOP, Course.GIVE_UP}:
            pause = longest
        self._pause = min(longest, self._pause * 2)
        return pause

    def _leave(self, spot: Spot | None) -> float:
        """The message is of no use any more: go on at once, with a new one where `spot` is None."""
        self._reposts += 1
        self._spot = spot
        return 0.0


def _face(card: Card) -> Card:
    """What a person sees of a card; records of our own messages move its revision only."""
    return replace(card, revision=0)


def _priority(card: Card) -> Priority:
    if card.state.final:
        return Priority.FINAL
    if card.state is RunState.PAUSED:
        return Priority.FAILURE
    return Priority.APPROVAL if card.rings else Priority.PROGRESS


def _now() -> float:
    return asyncio.get_running_loop().time()
