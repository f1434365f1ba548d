"""The later the event loop, the sooner an acknowledgement stops waiting for its commit."""

import asyncio
import time

from hypothesis import given
from hypothesis import strategies as st

from bot.slack.loop_lag import LOOK, SHORTEST, LoopLag

SLACK = 3.0
LONGEST = 2.0


def late(seconds: float) -> LoopLag:
    lag = LoopLag()
    lag.note(seconds)
    return lag


def test_a_loop_in_time_waits_the_longest() -> None:
    assert late(0.01).shortened(LONGEST) == LONGEST


@given(st.floats(0, 1.2))
def test_one_turn_before_and_one_after_the_wait_leave_it_within_slacks_three_seconds(
    turn: float,
) -> None:
    assert turn + late(turn).shortened(LONGEST) + turn < SLACK


@given(st.floats(0, 100), st.floats(0.01, 10))
def test_some_wait_is_always_left_and_never_more_than_the_longest(turn: float, most: float) -> None:
    assert min(most, SHORTEST) <= late(turn).shortened(most) <= most


def test_an_old_delay_fades() -> None:
    lag = late(1.0)
    for _ in range(50):
        lag.note(0.0)
    assert lag.shortened(LONGEST) == LONGEST


def test_a_turn_that_takes_long_is_noticed() -> None:
    async def run() -> float:
        lag = LoopLag()
        task = asyncio.create_task(lag.run())
        await asyncio.sleep(0)
        end = time.monotonic() + 5 * LOOK
        while time.monotonic() < end:
            pass  # as any callback does that computes for so long
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        return lag.seconds

    assert asyncio.run(run()) > LOOK
