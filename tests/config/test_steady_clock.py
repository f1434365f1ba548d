"""The steady clock: a step of the wall clock is seen, and reaches nobody before it is taken over."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from config.clock import Instant
from config.steady_clock import SteadyClock

HOUR = timedelta(hours=1)
SPANS = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=30))
STEPS = st.timedeltas(min_value=timedelta(days=-30), max_value=timedelta(days=30))


class Wall:
    def __init__(self) -> None:
        self.instant = Instant(
            wall=datetime(2026, 11, 30, 3, tzinfo=UTC), monotonic=timedelta(days=1)
        )

    def now(self) -> Instant:
        return self.instant

    def passes(self, by: timedelta) -> None:
        self.instant = Instant(wall=self.instant.wall + by, monotonic=self.instant.monotonic + by)

    def is_set(self, by: timedelta) -> None:
        self.instant = replace(self.instant, wall=self.instant.wall + by)


@given(SPANS, STEPS, SPANS)
def test_a_step_moves_nothing_until_it_is_followed(
    before: timedelta, step: timedelta, after: timedelta
) -> None:
    wall = Wall()
    start, clock = wall.instant.wall, SteadyClock(wall)
    wall.passes(before)
    wall.is_set(step)
    wall.passes(after)
    assert clock.now().wall == start + before + after
    assert clock.step() == step
    clock.follow()
    assert clock.now() == wall.instant
    assert clock.step() == timedelta(0)


def test_while_nobody_sets_the_clock_it_is_the_wall_clock() -> None:
    wall = Wall()
    clock = SteadyClock(wall)
    wall.passes(HOUR)
    assert clock.now() == wall.instant
