"""One theatre for each module: the warm process from which the bots are forked."""

from collections.abc import Iterator

import pytest

from tests.sweep.theatre import Theatre, theatre


@pytest.fixture(scope="module")
def stage() -> Iterator[Theatre]:
    with theatre() as opened:
        yield opened
