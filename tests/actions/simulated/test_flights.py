"""Who asks while a reading is under way gets one that begins afterwards, together with others."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from actions.simulated.flights import Flights
from tests.patience import DEADLINE, until


class Reading:
    """Gives the number of its call; each call waits until it is let go."""

    def __init__(self) -> None:
        self.begun = 0
        self.go = threading.Semaphore(0)

    def __call__(self) -> int:
        self.begun += 1
        number = self.begun
        assert self.go.acquire(timeout=DEADLINE)
        return number


def asked(flights: Flights[int], waiting: int) -> bool:
    """Whether so many threads wait for the reading that comes next."""
    following = flights._next
    return following is not None and len(following._condition._waiters) >= waiting  # type: ignore[attr-defined]


def test_those_who_ask_during_a_reading_share_the_next_one() -> None:
    flights: Flights[int] = Flights()
    reading = Reading()
    with ThreadPoolExecutor(6) as threads:
        first: Future[int] = threads.submit(flights.take, reading)
        until(lambda: reading.begun == 1)
        others = [threads.submit(flights.take, reading) for _ in range(5)]
        until(lambda: asked(flights, 4))
        for _ in range(2):
            reading.go.release()
        assert first.result(DEADLINE) == 1
        assert [one.result(DEADLINE) for one in others] == [2] * 5
    assert reading.begun == 2


def test_nobody_gets_a_reading_that_began_before_the_question() -> None:
    flights: Flights[int] = Flights()
    reading = Reading()
    for _ in range(2):
        reading.go.release()
    assert [flights.take(reading), flights.take(reading)] == [1, 2]


def test_a_reading_that_fails_fails_for_those_who_share_it_and_for_nobody_else() -> None:
    flights: Flights[int] = Flights()

    def fail() -> int:
        raise OSError("no answer")

    with pytest.raises(OSError, match="no answer"):
        flights.take(fail)
    assert flights.take(lambda: 7) == 7
