"""One installed program for each test."""

from collections.abc import Iterator

import pytest

from tests.actions.remote.on_node.installed import Installed, installed, is_root


@pytest.fixture
def node() -> Iterator[Installed]:
    """A node's root."""
    if not is_root():
        pytest.skip("the node's program runs as root: run the tests as root")
    with installed() as here:
        yield here
