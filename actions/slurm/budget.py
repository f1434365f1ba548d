"""How often the controller may be asked: one token bucket for the whole bot (hands 1).

Used by `cli.SlurmCli`; the clock is passed in. Never blocks by itself: it says how long to wait.
"""

import threading
from datetime import timedelta

from config.clock import Clock

RATE = 2.0
"""Questions a second."""
BURST = 10.0
"""Questions that may come at once after silence: one snapshot and one action's looks."""
SLOWEST = 0.25
SLOW_ANSWER = timedelta(seconds=3)
"""An answer that takes longer halves the rate."""
CALM = timedelta(seconds=60)
"""After so long without a slow answer the rate doubles again."""


class QuestionBudget:
    """Token bucket; writes may go into debt, because a drain must not wait behind readers."""

    def __init__(self, clock: Clock) -> None:
        """Starts full."""
        self._clock = clock
        self._lock = threading.Lock()
        self._tokens = BURST
        self._rate = RATE
        self._at = clock.now().monotonic
        self._slowed_at = self._at

    @property
    def rate(self) -> float:
        """Questions a second that are allowed now."""
        with self._lock:
            self._refill()
            return self._rate

    def take(self, questions: int) -> timedelta:
        """Take so many; how long the caller has to wait before it asks."""
        with self._lock:
            self._refill()
            self._tokens -= questions
            return timedelta(seconds=max(0.0, -self._tokens / self._rate))

    def answered(self, *, took: timedelta, limited: bool = False) -> None:
        """Tell how an answer came; a slow one or a rate-limit answer halves the rate."""
        if took < SLOW_ANSWER and not limited:
            return
        with self._lock:
            self._refill()
            self._rate = max(SLOWEST, self._rate / 2)
            self._slowed_at = self._at

    def _refill(self) -> None:
        now = self._clock.now().monotonic
        self._tokens = min(BURST, self._tokens + (now - self._at).total_seconds() * self._rate)
        self._at = now
        if self._rate < RATE and now - self._slowed_at >= CALM:
            self._rate = min(RATE, self._rate * 2)
            self._slowed_at = now
