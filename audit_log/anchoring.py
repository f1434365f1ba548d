"""Sends anchors when they are due, and knows how far they are behind.

`Anchoring.tick` is a duty of its own; the engine calls `before_end` before a run that changed anything
becomes final. A sink that fails or hangs stops nobody: it is waited for once, for a moment, then it is
recorded, said in `status`, and paged when it lasts.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from audit_log.anchors import Anchor, AnchorSink
from audit_log.ledger import Ledger
from audit_log.records import Event, EventKind
from config.actors import ENGINE
from config.clock import Clock
from config.json_values import JsonMap

log = logging.getLogger(__name__)

PATIENCE = 2.0
"""Seconds for which everybody together waits for a sink; after that it is on its own until it answers."""
PAGED_AFTER = timedelta(minutes=5)
"""A sink that is in trouble for so long is paged about: a mount may be away for a moment."""

Tell = Callable[[str, str], None]
"""Gets the name of a sink and what is wrong with it; an empty text when it is over."""


def tell_nobody(sink: str, problem: str) -> None:
    """Where nobody pages, the log line that was written is all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorStatus:
    """How far the anchors are behind; for `doctor`, the metrics and the alarm."""

    newest: Anchor | None
    records_behind: int
    age: timedelta
    """How long records have been waiting for an anchor; zero when none waits."""
    failing: tuple[str, ...]
    """Sinks whose last delivery failed or has not come back, with the reason."""
    leaves_host: bool


@dataclass(slots=True)
class _Post:
    """One sink and how it stands."""

    sink: AnchorSink
    busy: bool = False
    """A delivery is under way, in a thread of its own."""
    problem: str = ""
    since: timedelta | None = None
    """When the trouble began, by the monotonic clock."""
    told: bool = False


class Anchoring:
    """All sinks of one ledger. Safe to use from any thread."""

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        sinks: Sequence[AnchorSink],
        interval: timedelta = timedelta(seconds=60),
        records: int = 1000,
    ) -> None:
        """Nothing is sent yet; the first tick does."""
        self._ledger = ledger
        self._clock = clock
        self._posts = tuple(_Post(sink=sink) for sink in sinks)
        self._interval = interval
        self._records = records
        self._newest: Anchor | None = None
        self._covered_at = clock.now().monotonic
        self._one_at_a_time = threading.Lock()
        self._state = threading.Lock()
        self.tell: Tell = tell_nobody
        """Set by wiring: how a person hears of a sink that is in trouble for long."""

    def tick(self) -> None:
        """Send when records have waited long enough or are many; tell of trouble that lasts."""
        status = self.status()
        if status.records_behind >= self._records or status.age >= self._interval:
            self.anchor_now()
        self._tell_of_trouble()

    def anchor_now(self) -> AnchorStatus:
        """Send the head as it is now to every sink that has taken its last one."""
        with self._one_at_a_time:
            self._send()
        return self.status()

    def before_end(self) -> None:
        """Have everything that is recorded by now anchored, or go on without: nothing waits for a
        sink that is known to be in trouble, and nobody for longer than PATIENCE.
        """
        wanted = self._ledger.head.seq
        if not any(not post.problem for post in self._posts):
            return
        with self._one_at_a_time:
            if self._newest is None or self._newest.seq < wanted:
                self._send()

    def status(self) -> AnchorStatus:
        """Where the anchors stand."""
        with self._state:
            newest = self._newest
            behind = self._ledger.head.seq - (newest.seq if newest else 0)
            if not behind:
                self._covered_at = self._clock.now().monotonic
            failing = sorted(
                f"{post.sink.name}: {post.problem}" for post in self._posts if post.problem
            )
            return AnchorStatus(
                newest=newest,
                records_behind=behind,
                age=self._clock.now().monotonic - self._covered_at,
                failing=tuple(failing),
                leaves_host=any(post.sink.leaves_host for post in self._posts),
            )

    def _send(self) -> None:
        """One anchor to every sink that is free, each in a thread: a dead mount obeys no time-out."""
        now, head = self._clock.now(), self._ledger.head
        anchor = Anchor(
            instance=self._ledger.instance, seq=head.seq, digest=head.digest, at=now.wall
        )
        under_way: list[tuple[_Post, threading.Event]] = []
        for post in self._posts:
            if post.busy:
                continue
            ended = threading.Event()
            thread = threading.Thread(
                target=self._deliver, args=(post, anchor, now.monotonic, ended), daemon=True
            )
            post.busy = True
            try:
                thread.start()
            except RuntimeError as error:  # no thread is left: this sink waits for the next turn
                post.busy = False
                self._turn(post, str(error))
                continue
            under_way.append((post, ended))
        end = time.monotonic() + PATIENCE
        for post, ended in under_way:
            if not ended.wait(max(0.0, end - time.monotonic())) and post.busy:
                self._turn(post, f"no answer within {PATIENCE:.0f} s")

    def _deliver(self, post: _Post, anchor: Anchor, at: timedelta, ended: threading.Event) -> None:
        """Send to one sink, however long it takes."""
        problem = ""
        try:
            post.sink.send(anchor)
        except OSError as error:
            problem = str(error) or type(error).__name__
        except Exception as error:  # a sink's own fault must not look like an anchor that is there
            log.exception("anchor sink %s failed in its own code", post.sink.name)
            problem = f"{type(error).__name__} in its own code"
        try:
            self._settle(post, anchor, at, problem)
        except Exception:  # the ledger may be full or closed; the next delivery records it
            log.exception("the state of anchor sink %s could not be recorded", post.sink.name)
        finally:
            post.busy = False
            ended.set()

    def _settle(self, post: _Post, anchor: Anchor, at: timedelta, problem: str) -> None:
        if not problem:
            with self._state:
                if self._newest is None or self._newest.seq <= anchor.seq:
                    self._newest, self._covered_at = anchor, at
        self._turn(post, problem)

    def _turn(self, post: _Post, problem: str) -> None:
        """A change between working and failing is recorded."""
        with self._state:
            if post.problem == problem:
                return
            post.problem = problem
            if not problem:
                post.since = None
            elif post.since is None:
                post.since = self._clock.now().monotonic
        data: JsonMap = {"sink": post.sink.name, "works": not problem, "problem": problem}
        event = Event(kind=EventKind.ANCHORED, actor=ENGINE.id, data=data)
        self._ledger.commit(lambda transaction: transaction.append(event))

    def _tell_of_trouble(self) -> None:
        """Once for each sink that is in trouble for long, and once when it is over."""
        now = self._clock.now().monotonic
        for post in self._posts:
            since, problem = post.since, post.problem
            lasts = bool(problem) and since is not None and now - since >= PAGED_AFTER
            if lasts != post.told and (lasts or not problem):
                self.tell(post.sink.name, problem)
                post.told = lasts
