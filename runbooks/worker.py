"""Moves the runs that are due, and wakes the duties; wakes at stored times and at news.

Started by `bot.wiring` in threads of its own. APScheduler only wakes it; what is due stands in the
ledger's projections, so nothing is lost when the process dies or a wake-up is missed.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial

from apscheduler.schedulers.background import BackgroundScheduler

from audit_log.errors import StoreFailed
from audit_log.records import Event, EventKind
from config.actors import ENGINE
from config.clock import microseconds
from config.ids import RunId
from config.steady_clock import SteadyClock
from runbooks.duties import Duties
from runbooks.engine import Engine
from runbooks.parts import Parts
from runbooks.unfinished import Unfinished

log = logging.getLogger(__name__)

TICK = timedelta(seconds=5)
"""Longest time without looking at what is due (design 5: at least every 10 s)."""
JUMP = timedelta(seconds=2)
"""A difference between the two clocks above this is a jump of the wall clock."""
STUCK = timedelta(minutes=15)
"""A run that holds its thread for so long is told to a person: its look or effect hangs."""
THREADS = 8
"""Runs that are carried out at the same time; the others wait for milliseconds, not for each other's
waits, because a waiting run holds no thread."""


class Worker:
    """The loop that keeps runs moving."""

    def __init__(
        self,
        parts: Parts,
        engine: Engine,
        clock: SteadyClock,
        duties: Duties | None = None,
    ) -> None:
        """`clock` is the one by which everything decides; `duties` are woken at each tick."""
        self._parts = parts
        self._clock = clock
        self._engine = engine
        self._duties = duties
        self._unfinished = Unfinished(parts)
        self._news = threading.Event()
        self._stopping = False
        self._busy: dict[RunId, Future[None]] = {}
        self._not_before: dict[RunId, datetime] = {}
        self._since: dict[RunId, timedelta] = {}
        """Since when, by the monotonic clock, a run has held or waited for a thread."""
        self._told: set[RunId] = set()
        """Runs that hang and were told to a person."""
        self._asked: set[RunId] = set()
        """Runs of which something was asked while they were carried out, on an older view of them."""
        self._guard = threading.Lock()
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="run")
        self._loop = threading.Thread(target=self._run, name="worker", daemon=True)
        self._scheduler = BackgroundScheduler(timezone="UTC")
        self._scheduler.add_job(
            self.wake,
            "interval",
            seconds=TICK.total_seconds(),
            misfire_grace_time=None,
            coalesce=False,
        )

    def start(self) -> None:
        """Begin; every open run is looked at once."""
        if self._duties is not None:
            self._duties.start()
        self._loop.start()
        self._scheduler.start()

    def wake(self) -> None:
        """There is news, or a tick."""
        self._news.set()

    def changed(self, run: RunId) -> None:
        """Something was asked of this run: look at it now, whatever it waits for."""
        with self._guard:
            self._not_before.pop(run, None)
            if run in self._busy:
                self._asked.add(run)
        self._news.set()

    def stop(self) -> None:
        """Park each run at its next step boundary, take nothing new; all go on after the next start."""
        self._stopping = True
        self._engine.park()
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
        self._news.set()
        if self._loop.is_alive():
            self._loop.join()
        if self._duties is not None:
            self._duties.stop()
        self._pool.shutdown(wait=True)

    def _run(self) -> None:
        while not self._stopping:
            self._news.clear()
            try:
                self.tick()
            except Exception:  # the loop outlives any fault; the next tick tries again
                log.exception("the worker could not look at what is due")
            self._news.wait(self._pause())

    def tick(self) -> None:
        """One look at everything that is due."""
        self._watch_clock()
        if self._duties is not None:
            self._duties.wake()
            self._guarded(self._duties.watch)
        now = self._clock.now().wall
        self._guarded(partial(self._unfinished.watch, now))
        self._tell_of_stuck()
        for run, due_us in self._due(now):
            self._start(run, due_us)

    def _guarded(self, look: Callable[[], None]) -> None:
        try:
            look()
        except Exception:  # one look must not keep the others, and the runs, from their turn
            log.exception("a look of the worker failed and is tried again at the next tick")

    def _watch_clock(self) -> None:
        """A step of the wall clock is recorded, and what is waited for moves with it (design 5)."""
        step = self._clock.step()
        if abs(step) >= JUMP:
            data = {"by_us": step // timedelta(microseconds=1)}
            event = Event(kind=EventKind.CLOCK_JUMPED, actor=ENGINE.id, data=data)
            self._parts.ledger.commit(lambda transaction: transaction.append(event))
            with self._guard:
                self._not_before.clear()
        self._clock.follow()

    def _tell_of_stuck(self) -> None:
        """Once for each run that has held a thread for longer than any look or effect may take."""
        now = self._clock.now().monotonic
        with self._guard:
            stuck = [run for run, since in self._since.items() if now - since >= STUCK]
            for run in stuck:
                del self._since[run]
        for run in stuck:
            self._guarded(partial(self._unfinished.tell_stuck, run))
            with self._guard:
                hangs = run in self._busy
                if hangs:
                    self._told.add(run)
            if not hangs:  # it came back while it was told
                self._guarded(partial(self._unfinished.tell_moving, run))

    def _due(self, now: datetime) -> tuple[tuple[RunId, int], ...]:
        rows = self._parts.ledger.query(
            "SELECT id, due_us FROM runs WHERE open = 1 AND due_us IS NOT NULL AND due_us <= ? "
            "ORDER BY due_us, number",
            (microseconds(now),),
        )
        with self._guard:
            return tuple(
                (RunId(row[0]), row[1])
                for row in rows
                if row[0] not in self._busy and self._not_before.get(RunId(row[0]), now) <= now
            )

    def _start(self, run: RunId, due_us: int) -> None:
        with self._guard:
            if self._stopping or run in self._busy:
                return
            self._not_before.pop(run, None)
            self._since[run] = self._clock.now().monotonic
            self._busy[run] = self._pool.submit(self._advance, run, due_us)

    def _advance(self, run: RunId, due_us: int) -> None:
        try:
            self._rest(run, self._engine.advance(run).at or self._idle(run, due_us))
        except StoreFailed as problem:  # no fault of the run: it goes on where it stands
            log.warning("%s waits, the ledger takes nothing: %s", run, problem)
            self._rest(run, self._clock.now().wall + TICK)
        except Exception as problem:  # a fault of ours must stop this run, not the bot
            log.exception("%s could not go on", run)
            self._guarded(partial(self._unfinished.give_to_person, run, problem))
            self._rest(run, self._clock.now().wall + TICK)
        finally:
            with self._guard:
                self._busy.pop(run, None)
                self._since.pop(run, None)
                self._asked.discard(run)
                told = run in self._told
                self._told.discard(run)
            if told:
                self._guarded(partial(self._unfinished.tell_moving, run))
            self._news.set()

    def _rest(self, run: RunId, until: datetime | None) -> None:
        """Not before then, unless something was asked of it meanwhile."""
        with self._guard:
            if until is not None and run not in self._asked:
                self._not_before[run] = until

    def _idle(self, run: RunId, due_us: int) -> datetime | None:
        """One tick for a run that only news will move and that still is as due as it was: whatever
        the reason is, the loop must not spin on it.
        """
        still = self._parts.ledger.query(
            "SELECT 1 FROM runs WHERE id = ? AND open = 1 AND due_us = ?", (run, due_us)
        )
        return self._clock.now().wall + TICK if still else None

    def _pause(self) -> float:
        """Seconds until the next stored time, at most one tick."""
        now = self._clock.now().wall
        rows = self._parts.ledger.query(
            "SELECT min(due_us) FROM runs WHERE open = 1 AND due_us > ?", (microseconds(now),)
        )
        with self._guard:
            waits = [at - now for at in self._not_before.values() if at > now]
        if rows[0][0] is not None:
            waits.append(timedelta(microseconds=rows[0][0] - microseconds(now)))
        return max(0.0, min([*waits, TICK]).total_seconds())
