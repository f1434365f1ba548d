"""The single thread that writes. It owns the only writing connection.

Requests wait in four queues by urgency; up to 64 of them share one transaction, each in a savepoint
of its own, so that one that fails takes none of the others with it. Results are handed out only
after COMMIT has succeeded. Used by `audit_log.ledger` only.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Protocol

from audit_log.ballast import Ballast
from audit_log.database import Connection
from audit_log.errors import StoreClosed, StoreError, StoreFailed, StoreFull

BATCH = 64
"""Requests that share one transaction."""

LONGEST_LINGER = 0.002
"""Seconds. See `Writer._linger`."""


class Urgency(IntEnum):
    """Which requests go first. `OUTCOME` is also what a full disk still serves: outcomes, releases
    of our own marks, and pages.
    """

    ACK = 0
    OUTCOME = 1
    INTENT = 2
    REST = 3


class Position(Protocol):
    """The state that must follow the database when a request or a batch is rolled back."""

    def save(self) -> Any:
        """The state now."""
        ...

    def restore(self, saved: Any) -> None:
        """Go back to it."""
        ...


@dataclass(slots=True)
class _Request:
    """One unit of work and its waiting caller."""

    work: Callable[[], Any]
    urgency: Urgency
    future: "Future[Any]" = field(default_factory=Future)
    result: Any = None
    error: BaseException | None = None
    retried: bool = False


class Writer:
    """Serves requests until it is closed."""

    def __init__(
        self,
        connection: Connection,
        position: Position,
        ballast: Ballast,
        on_failure: Callable[[StoreFailed], None],
    ) -> None:
        """The thread starts at once."""
        self._connection = connection
        self._position = position
        self._ballast = ballast
        self._on_failure = on_failure
        self._queues: tuple[deque[_Request], ...] = tuple(deque() for _ in Urgency)
        self._wake = threading.Condition()
        self._closing = False
        self._waits_for = 1
        self._together = 1
        self._commit_took = 0.0
        self._problem: StoreFailed | None = None
        self._thread = threading.Thread(target=self._run, name="ledger-writer", daemon=True)
        self._thread.start()

    @property
    def problem(self) -> StoreFailed | None:
        """Why new work is refused; None when it is not."""
        return self._problem

    def submit(self, work: Callable[[], Any], urgency: Urgency) -> "Future[Any]":
        """Queue `work`; the future is done when it is durable or has failed."""
        if threading.current_thread() is self._thread:
            raise RuntimeError("a request inside a request would wait for itself: use one")
        request = _Request(work, urgency)
        with self._wake:
            if self._closing:
                raise StoreClosed("the ledger is closed")
            self._queues[urgency].append(request)
            if self._queued() >= self._waits_for:
                self._wake.notify()
        return request.future

    def close(self) -> None:
        """Serve what is queued, then end."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()

    def _run(self) -> None:
        """The thread."""
        while batch := self._take():
            try:
                self._serve(self._admitted(batch))
            except BaseException as error:  # noqa: BLE001  else every caller would wait for ever
                self._give_up(batch, error)

    def _take(self) -> list[_Request]:
        """The next requests in order of urgency; empty when closed and nothing is left."""
        with self._wake:
            self._linger()
            self._waits_for = 1
            while not self._queued() and not self._closing:
                self._wake.wait()
            batch: list[_Request] = []
            for queue in self._queues:
                while queue and len(batch) < BATCH:
                    batch.append(queue.popleft())
            self._together = len(batch)
            return batch

    def _queued(self) -> int:
        """How many requests wait."""
        return sum(map(len, self._queues))

    def _linger(self) -> None:
        """Let those come back who were answered just now, so that they share one commit with those
        who came meanwhile: it is the slowest part of all, and whoever comes first would else have
        it to itself while the others wait. Never for longer than the last one took, and never when
        callers come one by one.
        """
        self._waits_for = min(self._together + self._queued(), BATCH)
        end = time.monotonic() + min(self._commit_took, LONGEST_LINGER)
        while self._waits_for > 1 and self._queued() < self._waits_for and not self._closing:
            left = end - time.monotonic()
            if left <= 0 or not self._wake.wait(left):
                return

    def _admitted(self, batch: list[_Request]) -> list[_Request]:
        """Those that may be served in the present state; the others are answered at once."""
        live = [request for request in batch if self._wanted(request)]
        if isinstance(self._problem, StoreFull) and self._ballast.fill():
            self._problem = None
        if self._problem is None:
            return live
        full = isinstance(self._problem, StoreFull)
        served = [one for one in live if full and one.urgency is Urgency.OUTCOME]
        for request in live:
            if request not in served:
                request.future.set_exception(self._problem)
        return served

    @staticmethod
    def _wanted(request: _Request) -> bool:
        """Whether somebody still waits; afterwards it can no longer be cancelled."""
        return request.retried or request.future.set_running_or_notify_cancel()

    def _serve(self, batch: list[_Request]) -> None:
        """One transaction for all of them."""
        if not batch:
            return
        before = self._position.save()
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for request in batch:
                self._attempt(request)
            begun = time.monotonic()
            self._connection.execute("COMMIT")
            self._commit_took = time.monotonic() - begun
        except StoreError as error:
            self._roll_back(before)
            self._fail(batch, error)
            return
        for request in batch:
            if request.error is None:
                request.future.set_result(request.result)
            else:
                request.future.set_exception(request.error)

    def _attempt(self, request: _Request) -> None:
        """One request in its savepoint. Raises StoreFailed when the whole batch is lost."""
        before = self._position.save()
        self._connection.execute("SAVEPOINT request")
        try:
            request.result, request.error = request.work(), None
        except BaseException as error:
            if not self._connection.in_transaction or isinstance(error, StoreFailed):
                raise _as_failure(error) from error
            self._connection.execute("ROLLBACK TO request")
            self._position.restore(before)
            request.error = error
        self._connection.execute("RELEASE request")

    def _roll_back(self, before: Any) -> None:
        """Back to where the batch began, in the database and in memory."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._position.restore(before)

    def _fail(self, batch: list[_Request], error: StoreError) -> None:
        """Answer a lost batch. For want of space, outcomes are tried once more from the ballast."""
        again = []
        if isinstance(error, StoreFull):
            self._ballast.free()
            again = [r for r in batch if r.urgency is Urgency.OUTCOME and not r.retried]
        # Noted before anybody is answered: who sees the error must also see the state.
        self._note(error)
        for request in batch:
            if request not in again:
                request.future.set_exception(error)
        for request in again:
            request.retried = True
        if again:
            self._serve(again)

    def _give_up(self, batch: list[_Request], error: BaseException) -> None:
        """A fault of the writer itself: nothing more is written, and everybody gets an answer."""
        failure = StoreFailed(f"the ledger's writer met a fault, start again: {error!r}")
        self._note(failure)
        for request in batch:
            if not request.future.done():
                request.future.set_exception(failure)

    def _note(self, error: StoreError) -> None:
        """Remember a lasting failure, and say it once."""
        if not isinstance(error, StoreFailed) or not error.lasting:
            return
        first, self._problem = self._problem is None, error
        if first:
            self._on_failure(error)


def _as_failure(error: BaseException) -> StoreFailed:
    """The error of a batch whose transaction is gone."""
    return (
        error if isinstance(error, StoreFailed) else StoreFailed(f"the transaction ended: {error}")
    )
