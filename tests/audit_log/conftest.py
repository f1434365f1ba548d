from collections.abc import Iterator
from pathlib import Path

import pytest

from audit_log.ledger import Ledger
from tests.audit_log.ledgers import Counts, HandClock, open_ledger


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
