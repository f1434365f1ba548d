"""The machine's own clocks; constructed by `bot.wiring` and nowhere else."""

import time
from datetime import UTC, datetime, timedelta

from config.clock import Instant


class SystemClock:
    """`Clock` over the wall clock and CLOCK_BOOTTIME, which goes on while the host sleeps."""

    def now(self) -> Instant:
        """The time now."""
        return Instant(
            wall=datetime.now(UTC),
            monotonic=timedelta(seconds=time.clock_gettime(time.CLOCK_BOOTTIME)),
        )
