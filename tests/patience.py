"""How long tests wait for what must come.

A deadline ends a test that hangs; it times nothing. It is far above every interval of the product's
that it could race (the quiet minute after a start of slurmctld, 30 s for a page, the worker's 5 s), so
that a machine that is many times slower sees the same outcome. What shall happen after a longer
interval, a test brings about with a clock, never by waiting.
"""

import threading
import time
from collections.abc import Callable

DEADLINE = 300.0
"""Seconds."""


def until(
    fact: Callable[[], object],
    missed: Callable[[], object] = lambda: "it did not come true",
    look: float = 0.02,
) -> None:
    """Look until it is so; `missed` says afterwards what is there instead."""
    end, pause = time.monotonic() + DEADLINE, threading.Event()
    while not fact():
        assert time.monotonic() < end, missed()
        pause.wait(look)
