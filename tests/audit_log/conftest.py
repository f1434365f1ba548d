from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from audit_log.ledger import Ledger
from tests.audit_log.ledgers import Counts, HandClock, open_ledger

# A busy machine makes an example slow; slowness is no failure.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path, clock: HandClock) -> Iterator[Ledger]:
    opened = open_ledger(path, clock, [Counts()])
    yield opened
    opened.close()
