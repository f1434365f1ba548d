"""A Slack that gives a slow machine time, and a bot that takes it.

Slack's three seconds are the matter of tests/bot/standin/test_faults_reach_the_bot.py and of the
measurements; everywhere else a machine that is too slow for them is no failure.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from bot.slack import listeners, visitors
from bot.standin.server import Strictness
from tests.patience import DEADLINE

LENIENT = Strictness(retry_after=(0.0,), ack_seconds=DEADLINE, trigger_seconds=DEADLINE)


@contextmanager
def unhurried() -> Iterator[None]:
    """Acknowledge when the answer is there, in this process."""
    with (
        patch.object(listeners, "ACK_PATIENCE", DEADLINE),
        patch.object(visitors, "PATIENCE", DEADLINE),
    ):
        yield
