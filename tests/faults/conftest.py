"""A cluster for each test, and one that is shared by the tests that change nothing in it."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.bots import Served, Yard, yard


@pytest.fixture
def place() -> Iterator[Yard]:
    """A cluster of one's own; its folder's name is short, for the sake of sockets."""
    with tempfile.TemporaryDirectory(prefix="nwf-") as folder, yard(Path(folder)) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared() -> Iterator[Served]:
    """A running bot for questions that change nothing."""
    with tempfile.TemporaryDirectory(prefix="nwf-") as folder, yard(Path(folder)) as opened:
        bot = opened.bot()
        bot.start()
        yield bot
