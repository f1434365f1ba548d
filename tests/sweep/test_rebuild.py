"""What every kill leaves in the ledger is enough to make all the other tables again."""

import pytest

from audit_log.database import open_plain, open_reader
from audit_log.ledger import Ledger
from audit_log.rebuild import fingerprints
from config.redaction import Redactor
from runbooks.projection import RunProjector
from tests.sweep.crash import Sweep, points
from tests.sweep.mortal import Sort
from tests.sweep.night import WorldClock
from tests.sweep.scenarios import SCENARIOS
from tests.sweep.theatre import Theatre


@pytest.mark.parametrize("name", ["drain-approved", "dropped-A1-down"])
def test_after_a_kill_tables_that_are_lost_are_made_again_equal(stage: Theatre, name: str) -> None:
    sweep = Sweep(stage, SCENARIOS[name])
    seen = 0
    for point, label in points(sweep.labels):
        if label == "step.skipped" or (point.sort is Sort.WRITE and point.moment.within):
            continue
        sweep.killed(sweep.start, point)
        assert not sweep.swept.failures
        before = open_tables(stage)
        lose_tables(stage)
        assert open_tables(stage) == before, f"{name} {point}"
        seen += 1
    print(f"{name}: {seen} kills")


def open_tables(stage: Theatre) -> dict[str, str]:
    """Open the ledger as a start does, and say what its tables hold."""
    path = stage.folder / "nodewarden.db"
    clock = WorldClock(stage.plugs)
    projectors = (RunProjector(),)
    ledger = Ledger.open(path, clock=clock, redactor=Redactor(), projectors=projectors)
    reader = open_reader(path)
    try:
        return fingerprints(reader, ledger.projectors)
    finally:
        reader.close()
        ledger.close()


def lose_tables(stage: Theatre) -> None:
    """Somebody drops every table that is not the ledger, and the note of which release made them."""
    connection = open_plain(stage.folder / "nodewarden.db")
    try:
        for table in RunProjector.tables:
            connection.execute(f'DROP TABLE "{table}"')
        connection.execute("DELETE FROM settings WHERE name = 'projections'")
    finally:
        connection.close()
