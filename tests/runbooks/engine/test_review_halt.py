"""The stop button as a file: made or removed by hand, on a full disk, or as something odd."""

import os
from pathlib import Path

import pytest

from audit_log.records import EventKind
from runbooks.halt_watch import HaltWatch
from runbooks.requests import CannotDo
from tests.runbooks.engine.lamps import ANN, LIGHT, Bench

HALTS = {EventKind.HALT_SET, EventKind.HALT_CLEARED}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, {"light": LIGHT})


def halts(bench: Bench) -> list[tuple[EventKind, str]]:
    found = (record.event for record in bench.ledger.records())
    return [(event.kind, str(event.data["why"])) for event in found if event.kind in HALTS]


def test_a_halt_file_made_and_removed_by_hand_stands_in_the_ledger(bench: Bench) -> None:
    watch = HaltWatch(bench.ledger, bench.parts.halt)
    watch.tick()
    bench.parts.halt.path.write_text("smoke in row 4\n")
    for _ in range(4):
        watch.tick()
    bench.parts.halt.path.unlink()
    for _ in range(4):
        watch.tick()
    assert halts(bench) == [
        (EventKind.HALT_SET, "halt file found: smoke in row 4"),
        (EventKind.HALT_CLEARED, "the halt file was removed by hand"),
    ]


def test_a_halt_at_a_door_is_recorded_once(bench: Bench) -> None:
    watch = HaltWatch(bench.ledger, bench.parts.halt)
    bench.requests.halt(ANN.id, "ann: enough")
    for _ in range(3):
        watch.tick()
    bench.requests.clear_halt(ANN.id, "ann: on we go")
    for _ in range(3):
        watch.tick()
    assert halts(bench) == [
        (EventKind.HALT_SET, "ann: enough"),
        (EventKind.HALT_CLEARED, "ann: on we go"),
    ]


def test_a_halt_counts_and_is_recorded_where_its_reason_does_not_fit_on_the_disk(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    bench.requests.halt(ANN.id, "ann: enough")
    monkeypatch.undo()
    assert bench.parts.halt.reason() is not None
    assert halts(bench) == [(EventKind.HALT_SET, "ann: enough")]


def test_a_halt_file_that_cannot_be_removed_is_named(bench: Bench) -> None:
    bench.parts.halt.path.mkdir()
    assert bench.parts.halt.reason() is not None
    with pytest.raises(CannotDo, match=str(bench.parts.halt.path)):
        bench.requests.clear_halt(ANN.id, "ann: on we go")
    assert bench.parts.halt.reason() is not None


def test_a_halt_file_that_cannot_be_made_is_named_with_what_still_stops_the_bot(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("runbooks.halt.os.open", full)
    with pytest.raises(CannotDo, match="NOT halted"):
        bench.requests.halt(ANN.id, "ann: enough")
