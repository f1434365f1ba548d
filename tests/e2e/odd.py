"""A second cluster, of the kind that makes life hard: nobody sees the jobs of others."""

from collections.abc import Iterator

import pytest

from bot.testbed import SlurmTestbed, TestbedOptions
from tests.e2e.served import ServedBot
from tests.testbed.fixture import fresh_folder


@pytest.fixture(scope="session")
def odd() -> Iterator[SlurmTestbed]:
    """Six nodes, PrivateData=jobs."""
    if why := SlurmTestbed.missing():
        pytest.skip(why)
    options = TestbedOptions(cluster="odd", private_data="jobs")
    with fresh_folder() as folder, SlurmTestbed(folder, nodes=6, options=options) as testbed:
        yield testbed


@pytest.fixture(scope="session")
def odd_bot(odd: SlurmTestbed) -> Iterator[ServedBot]:
    """A bot on it; it has AdminLevel=Admin until a test takes that away."""
    bot = ServedBot(odd, odd.folder / "served")
    text = bot.config.read_text().replace("gpu-[11-12]", "gpu-06")
    bot.config.write_text(text.replace("nwann", odd.options.admin_user))
    bot.start()
    yield bot
    bot.stop()
