"""A second cluster, of the kind that makes life hard: jobs are private, silent nodes die fast."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from bot.testbed import SlurmTestbed, TestbedOptions
from tests.e2e.served import ServedBot
from tests.testbed.fixture import fresh_folder

QUIET = 62.0
"""Seconds after a start of slurmctld in which the bot does not act (hands 1), and a little more."""


@dataclass(frozen=True)
class Odd:
    """The cluster, and when its controller started."""

    testbed: SlurmTestbed
    began: float

    def settle(self) -> None:
        """Wait until the bot believes the controller."""
        quiet: Callable[[], bool] = lambda: time.monotonic() - self.began > QUIET  # noqa: E731
        self.testbed.wait_for(quiet, "slurmctld is settled", seconds=QUIET + 5)


@pytest.fixture(scope="session")
def odd() -> Iterator[Odd]:
    """Six nodes, PrivateData=jobs, SlurmdTimeout 10 s."""
    if why := SlurmTestbed.missing():
        pytest.skip(why)
    options = TestbedOptions(cluster="odd", slurmd_timeout=10, private_data="jobs")
    with fresh_folder() as folder, SlurmTestbed(folder, nodes=6, options=options) as testbed:
        yield Odd(testbed, time.monotonic())


@pytest.fixture(scope="session")
def odd_bot(odd: Odd) -> Iterator[ServedBot]:
    """A bot on it; it has AdminLevel=Admin until a test takes that away."""
    bot = ServedBot(odd.testbed, odd.testbed.folder / "served")
    text = bot.config.read_text().replace("gpu-[11-12]", "gpu-06")
    bot.config.write_text(text.replace("nwann", odd.testbed.options.admin_user))
    bot.start()
    yield bot
    bot.stop()
