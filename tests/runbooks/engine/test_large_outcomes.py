"""A large outcome becomes a file before the transaction that records it begins."""

import threading
from pathlib import Path

import pytest

from audit_log.artefacts import ArtefactStore
from config.ids import StepId
from runbooks.journal import LARGEST_INLINE, Finished, Journal
from runbooks.model import Step
from runbooks.next_step import Place
from tests.runbooks.engine.lamps import LIGHT, Bench


def test_no_run_waits_for_the_file_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = Bench(tmp_path, {"light": LIGHT})
    run = world.ask("light", node="l1")
    threads: list[str] = []
    put = ArtefactStore.put

    def noted(store: ArtefactStore, content: bytes) -> str:
        threads.append(threading.current_thread().name)
        return put(store, content)

    monkeypatch.setattr(ArtefactStore, "put", noted)
    place = Place(key="switch", step=Step(id=StepId("switch")), node=None)
    done = Finished("done", output={"text": "x" * (LARGEST_INLINE + 1)})
    spec = world.parts.specs["lamp.on"]
    assert not Journal(world.parts).finish(run, place, spec, 1, done)
    world.ledger.close()
    assert threads == [threading.current_thread().name]
