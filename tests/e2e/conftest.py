"""Fixtures of the end-to-end tests."""

from collections.abc import Iterator

import pytest

from bot.testbed import SlurmTestbed
from tests.e2e.served import ServedBot
from tests.testbed.fixture import slurm_testbed

__all__ = ["slurm_testbed"]

_QUIET = 62
"""Seconds: for a minute after a start of slurmctld the bot does not act (hands 1)."""


@pytest.fixture(scope="session")
def settled(slurm_testbed: SlurmTestbed) -> SlurmTestbed:
    """A testbed whose controller has been up long enough to be believed."""
    import time

    began = time.monotonic()
    slurm_testbed.wait_for(
        lambda: time.monotonic() - began > _QUIET, "slurmctld is settled", seconds=_QUIET + 5
    )
    return slurm_testbed


@pytest.fixture(scope="session")
def bot(settled: SlurmTestbed) -> Iterator[ServedBot]:
    """A bot at work; Slack is not configured."""
    served = ServedBot(settled, settled.folder / "served")
    served.start()
    yield served
    served.stop()
