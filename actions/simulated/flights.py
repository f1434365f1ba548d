"""One reading for all who ask at the same time, begun after the last of them asked.

Used by `client` for snapshots: eight runs that each read a whole cluster kept the interpreter from
everything else. Nobody gets an answer that is older than the question.
"""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Flights(Generic[Value]):
    """The reading that is under way, and the one that follows it."""

    def __init__(self) -> None:
        """Nothing is under way."""
        self._guard = Lock()
        self._flying: Future[Value] | None = None
        self._next: Future[Value] | None = None

    def take(self, read: Callable[[], Value]) -> Value:
        """What `read` gives, called here or by somebody who asked meanwhile. Raises what it raises."""
        with self._guard:
            mine, before = self._next, self._flying
            leads = mine is None
            if mine is None:
                mine = self._next = Future()
        if not leads:
            return mine.result()
        if before is not None:
            before.exception()  # waits for its end, whatever that is
        with self._guard:
            self._flying, self._next = mine, None
        self._fly(mine, read)
        return mine.result()

    def _fly(self, mine: "Future[Value]", read: Callable[[], Value]) -> None:
        try:
            value = read()
        except BaseException as problem:  # noqa: BLE001 - everybody who waits must hear of it
            self._land(mine)
            mine.set_exception(problem)
        else:
            self._land(mine)
            mine.set_result(value)

    def _land(self, mine: "Future[Value]") -> None:
        """The air is free, unless the next one has begun already."""
        with self._guard:
            if self._flying is mine:
                self._flying = None
