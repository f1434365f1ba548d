"""What the bot does beside its runs: pages, anchors, watchers; each in a thread of its own.

Made by `bot.wiring`, woken and watched by the worker. A duty that hangs (a dead mount, a controller
that never answers) holds up nothing but itself: it is said in `status`, and somebody is paged, once.
It must never act on a cluster.
"""

import json
import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta

from audit_log.ledger import Ledger
from audit_log.records import Event, EventKind
from config.actors import ENGINE
from config.clock import Clock
from config.json_values import JsonMap

log = logging.getLogger(__name__)

BREATH = 0.05
"""Seconds between two turns of one duty, however much news there is."""
LAST_TURN = 10.0
"""Seconds in which all duties may finish when the bot ends; what hangs then ends with the process."""


@dataclass(frozen=True, slots=True)
class Duty:
    """One thing that is done again and again."""

    name: str
    """What it does, in a few words for people."""
    work: Callable[[], None]
    deadline: timedelta = timedelta(minutes=1)
    """A turn that takes longer hangs."""


@dataclass(slots=True)
class _Post:
    """One duty and how it stands."""

    duty: Duty
    news: threading.Event = field(default_factory=threading.Event)
    since: timedelta | None = None
    """When its present turn began, by the monotonic clock."""
    ended: bool = False
    """A turn of it has ended in this process."""
    told: bool = False
    """A page about it is out."""


class Duties:
    """All duties of one bot."""

    def __init__(self, duties: Iterable[Duty], ledger: Ledger, clock: Clock) -> None:
        """Starts nothing; what an earlier process paged about is remembered."""
        self._ledger = ledger
        self._clock = clock
        rows = ledger.query("SELECT key FROM pages WHERE resolved = 0")
        open_pages = {row[0] for row in rows}
        self._posts = tuple(_Post(duty=duty, told=self._key(duty) in open_pages) for duty in duties)
        self._stopping = threading.Event()
        self._threads = tuple(
            threading.Thread(target=self._serve, args=(post,), name=post.duty.name, daemon=True)
            for post in self._posts
        )

    def start(self) -> None:
        """Begin; each has its first turn with the first wake-up."""
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """There is news, or a tick: every duty has a turn as soon as it is free."""
        for post in self._posts:
            post.news.set()

    def stop(self) -> None:
        """Let the turns under way end, as far as they do."""
        self._stopping.set()
        self.wake()
        end = self._clock.now().monotonic + timedelta(seconds=LAST_TURN)
        for thread in self._threads:
            if thread.is_alive():
                left = end - self._clock.now().monotonic
                thread.join(max(0.0, left.total_seconds()))

    def watch(self) -> None:
        """Page about each duty that began to hang, and say when one is over it."""
        for post in self._posts:
            hangs = bool(self._hangs(post))
            over = post.ended and post.since is None
            if hangs != post.told and (hangs or over):
                self._page(post, hangs=hangs)
                post.told = hangs

    def hanging(self) -> tuple[str, ...]:
        """A sentence for each duty that hangs."""
        return tuple(said for said in map(self._hangs, self._posts) if said)

    def _hangs(self, post: _Post) -> str:
        """Since when it hangs, and what that means; the empty string while it does not."""
        since = post.since
        if since is None:
            return ""
        lasted = self._clock.now().monotonic - since
        if lasted < post.duty.deadline:
            return ""
        return (
            f"{post.duty.name} hangs since {lasted // timedelta(minutes=1)} min; runs go on without "
            "it: look for a dead mount or a host that does not answer, then restart the bot"
        )

    def _serve(self, post: _Post) -> None:
        while not self._stopping.is_set():
            post.news.wait()
            post.news.clear()
            post.since = self._clock.now().monotonic
            try:
                post.duty.work()
            except Exception:  # one turn must not end its duty
                log.exception("%s failed and is tried again at the next tick", post.duty.name)
            post.since, post.ended = None, True
            self._stopping.wait(BREATH)

    def _key(self, duty: Duty) -> str:
        return f"nodewarden/{self._ledger.instance}/duty/{duty.name}"

    def _page(self, post: _Post, *, hangs: bool) -> None:
        why = self._hangs(post) if hangs else f"{post.duty.name} goes on again"
        data: JsonMap = {
            "key": self._key(post.duty),
            "summary": f"nodewarden: {why}"[:200],
            "details": json.dumps({"why": why}),
            "resolved": not hangs,
        }
        event = Event(kind=EventKind.PAGE_INTENDED, actor=ENGINE.id, data=data)
        self._ledger.commit(lambda transaction: transaction.append(event))
