"""A sandbox on the twelve simulated nodes, with and without its bot."""

from collections.abc import Iterator

import pytest

from bot.sandbox.sandbox import Sandbox, SandboxOptions


@pytest.fixture
def still() -> Iterator[Sandbox]:
    """The cluster and the stand-in; nobody started the bot."""
    with Sandbox(SandboxOptions(scene="small")) as box:
        yield box


@pytest.fixture
def lively(still: Sandbox) -> Sandbox:
    """With the bot at work."""
    still.start_bot()
    return still
