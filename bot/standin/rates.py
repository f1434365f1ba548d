"""Slack's rate limits as token buckets, per method and per channel.

Called by the Web API before a method runs. Pure arithmetic over a time that is passed in.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """So many calls a minute, and how many may come at once."""

    per_minute: float
    burst: int


TIERS = {
    1: Rate(per_minute=1, burst=20),
    2: Rate(per_minute=20, burst=20),
    3: Rate(per_minute=50, burst=50),
    4: Rate(per_minute=100, burst=100),
}
"""Slack's tiers. Tier 1 holds only `apps.connections.open`, where reconnects come in bursts."""

PER_CHANNEL = Rate(per_minute=60, burst=5)
"""`chat.postMessage`: one a second for a channel, short bursts above it are let through."""


class Buckets:
    """One bucket per key, filled by the time that has passed."""

    def __init__(self) -> None:
        self._levels: dict[str, tuple[float, float]] = {}

    def take(self, key: str, rate: Rate, now: float) -> int | None:
        """Take one call from the bucket: None when it may go on, else whole seconds to wait."""
        level, then = self._levels.get(key, (float(rate.burst), now))
        level = min(float(rate.burst), level + (now - then) * rate.per_minute / 60)
        if level >= 1:
            self._levels[key] = (level - 1, now)
            return None
        self._levels[key] = (level, now)
        return max(1, math.ceil((1 - level) * 60 / rate.per_minute))
