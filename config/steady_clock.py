"""A wall clock that nobody's step moves in the middle of a decision.

Made by `bot.wiring` around the system's clock and read by everything that decides or records. When
somebody sets the wall clock, this one goes on as before until the worker has recorded the step and
lets it `follow`: so all times that the record moves lie on the side of the step from which it
moves them (design 5: nothing expires by a jump alone).
"""

from datetime import timedelta

from config.clock import Clock, Instant


class SteadyClock:
    """The wall as it was at the last `follow`, plus what has passed since by the monotonic clock."""

    def __init__(self, clock: Clock) -> None:
        """Begins at the wall clock's present."""
        self._clock = clock
        self._base = clock.now()

    def now(self) -> Instant:
        """The time now."""
        reading, base = self._clock.now(), self._base
        return Instant(
            wall=base.wall + (reading.monotonic - base.monotonic), monotonic=reading.monotonic
        )

    def step(self) -> timedelta:
        """How far the wall clock has been set ahead (or, below zero, back) since the last `follow`."""
        reading, base = self._clock.now(), self._base
        return (reading.wall - base.wall) - (reading.monotonic - base.monotonic)

    def follow(self) -> None:
        """Take the wall clock's present over."""
        self._base = self._clock.now()
