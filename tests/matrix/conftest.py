"""The served bot with everybody's shells; only root can be several users."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.matrix.everything import served
from tests.matrix.shells import Shell
from tests.matrix.site import Spot


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say in one line why the doors are not tried."""
    if os.getuid() != 0:
        reason = "needs root: the command line's door is asked by other OS users"
        for item in items:
            here = item.path.parent == Path(__file__).parent
            if here and {"site", "fresh", "as_root"} & set(getattr(item, "fixturenames", ())):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def as_root() -> None:
    """Marks a test that becomes other users."""


@pytest.fixture(scope="module")
def doors() -> Iterator[tuple[Spot, dict[str, Shell]]]:
    """One bot for the tests of a module: they name nodes of their own."""
    with served() as found:
        yield found


@pytest.fixture
def fresh() -> Iterator[tuple[Spot, dict[str, Shell]]]:
    """A bot of one's own, for a test that changes its configuration or its Slack."""
    with served() as found:
        yield found


@pytest.fixture
def site(doors: tuple[Spot, dict[str, Shell]]) -> Iterator[Spot]:
    """The bot, quiet again after each test."""
    yield doors[0]
    doors[0].tidy()


@pytest.fixture
def shells(doors: tuple[Spot, dict[str, Shell]]) -> dict[str, Shell]:
    """A terminal of each person."""
    return doors[1]
