"""The text of a run's row, which is put together from pieces that are kept."""

from pathlib import Path

import pytest
from pydantic import TypeAdapter

from runbooks import projection
from runbooks.run import Run
from tests.runbooks.engine.lamps import LIGHT, Bench

PLAIN = TypeAdapter(Run)


@pytest.fixture
def bodies(tmp_path: Path) -> list[str]:
    world = Bench(tmp_path, {"light": LIGHT})
    for lamp in ("l1", "l2", "l3"):
        world.go(world.ask("light", node=lamp))
    found = [row[0] for row in world.ledger.query("SELECT body FROM runs ORDER BY number")]
    world.ledger.close()
    return found


def test_a_remembered_run_is_the_run_that_its_text_says(bodies: list[str]) -> None:
    assert len(bodies) == 3
    for body in bodies:
        assert projection.decode(body) == PLAIN.validate_json(body)


def test_a_run_that_was_read_from_text_is_written_as_the_same_text(bodies: list[str]) -> None:
    for body in bodies:
        assert projection.encode(PLAIN.validate_json(body)) == body


def test_a_text_put_together_says_what_the_whole_run_says(bodies: list[str]) -> None:
    for body in bodies:
        run = PLAIN.validate_json(body)
        assert PLAIN.validate_json(PLAIN.dump_json(run)) == run
        assert len(run.steps) == 2
