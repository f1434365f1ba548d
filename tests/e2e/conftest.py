"""Fixtures of the end-to-end tests."""

from collections.abc import Iterator

import pytest

from bot.testbed import SlurmTestbed
from tests.e2e import quiet
from tests.e2e.served import ServedBot


@pytest.fixture(scope="session")
def settled(slurm_testbed: SlurmTestbed) -> SlurmTestbed:
    """A testbed whose controller has been up long enough to be believed."""
    quiet.settle(slurm_testbed)
    return slurm_testbed


@pytest.fixture(scope="session")
def bot(settled: SlurmTestbed) -> Iterator[ServedBot]:
    """A bot at work; Slack is not configured."""
    served = ServedBot(settled, settled.folder / "served")
    served.start()
    yield served
    served.stop()
