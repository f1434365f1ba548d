"""Our own share of Slack's rate limits, as token buckets. Pure: the time is an argument.

Used by `bot.slack.outbox`. What is left in a bucket below its reserve is kept for approvals, final
states and failures.
"""

from dataclasses import dataclass
from enum import IntEnum


class Priority(IntEnum):
    """What goes first when Slack takes less than there is."""

    APPROVAL = 0
    """Somebody is waited for."""
    FINAL = 1
    FAILURE = 2
    PROGRESS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """So many calls a minute, so many at once, and how many of those progress may not take."""

    per_minute: float
    burst: int
    reserve: int = 0


RATES = {
    "chat.postMessage": Rate(per_minute=60, burst=3),
    "chat.update": Rate(per_minute=50, burst=30, reserve=10),
    "chat.postEphemeral": Rate(per_minute=100, burst=40),
    "conversations.history": Rate(per_minute=50, burst=20),
    "conversations.replies": Rate(per_minute=50, burst=20),
}
"""Slack's tiers (slack.md 1.4); `chat.postMessage` is counted for each channel."""


class Bucket:
    """One bucket, filled by the time that has passed."""

    def __init__(self, rate: Rate, now: float) -> None:
        """Full."""
        self._rate = rate
        self._level = float(rate.burst)
        self._then = now
        self._closed_until = now

    def wait(self, priority: Priority, now: float) -> float:
        """Seconds until a call of this priority may go; 0: now."""
        self._fill(now)
        least = 1 + (self._rate.reserve if priority is Priority.PROGRESS else 0)
        missing = max(0.0, least - self._level)
        return max(self._closed_until - now, missing * 60 / self._rate.per_minute, 0.0)

    def take(self, now: float) -> None:
        """A call goes out."""
        self._fill(now)
        self._level -= 1

    def close(self, seconds: float, now: float) -> None:
        """Slack said 429: nothing goes before this is over."""
        self._closed_until = max(self._closed_until, now + seconds)

    def _fill(self, now: float) -> None:
        gained = (now - self._then) * self._rate.per_minute / 60
        self._level = min(float(self._rate.burst), self._level + gained)
        self._then = now
