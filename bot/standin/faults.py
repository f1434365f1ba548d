"""The switches that make the workspace misbehave, counted down one call at a time.

Tests and the sandbox set them, the Web API and Socket Mode ask for them. All under one lock.
"""

import threading
from collections import deque
from dataclasses import dataclass
from enum import StrEnum


class FaultKind(StrEnum):
    """What goes wrong with a call."""

    RATE_LIMIT = "rate_limit"
    """429 with Retry-After; the call is not processed."""
    ERROR = "error"
    """`ok: false` with the given error; the call is not processed."""
    HTTP = "http"
    """An HTTP status without a body of Slack's; the call is not processed."""
    CUT = "cut"
    """The call is processed, then the connection breaks before the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault for one call."""

    kind: FaultKind
    error: str = ""
    number: int = 0


class Faults:
    """What is still to go wrong."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: dict[str, deque[Fault]] = {}
        self._delays: dict[str, float] = {}
        self._duplicates = 0

    def add(self, method: str, fault: Fault, times: int) -> None:
        """Let the next `times` calls of `method` meet `fault`."""
        with self._lock:
            self._queues.setdefault(method, deque()).extend([fault] * times)

    def next_for(self, method: str) -> Fault | None:
        """The fault that this call meets, taken off the queue."""
        with self._lock:
            queue = self._queues.get(method)
            return queue.popleft() if queue else None

    def slow(self, method: str, seconds: float) -> None:
        """Answer `method` (`*`: every method) only after `seconds`; 0 ends it."""
        with self._lock:
            self._delays[method] = seconds

    def delay_of(self, method: str) -> float:
        """How long an answer of `method` takes longer than usual."""
        with self._lock:
            return self._delays.get(method, self._delays.get("*", 0.0))

    def duplicate_next(self, times: int = 1) -> None:
        """Deliver each of the next `times` envelopes twice."""
        with self._lock:
            self._duplicates += times

    def copies(self) -> int:
        """How often the envelope at hand is delivered."""
        with self._lock:
            if self._duplicates == 0:
                return 1
            self._duplicates -= 1
            return 2

    def clear(self) -> None:
        """End every fault."""
        with self._lock:
            self._queues.clear()
            self._delays.clear()
            self._duplicates = 0
