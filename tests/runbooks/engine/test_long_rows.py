"""A run over many nodes costs what its moves change, and decides as if it had read everything."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.ids import StepId
from config.node_names import NodeName
from runbooks import places
from runbooks.engine import MOST_MOVES
from runbooks.following import Following
from runbooks.frames import Frames, Outputs
from runbooks.machine import RunState
from runbooks.next_step import Frame, Next, next_step
from runbooks.run import StepRecord, StepState, step_key
from tests.runbooks.engine.lamps import Bench
from tests.runbooks.engine.test_steps import ROOMY, ROW

LOOK_FIRST = """\
runbook: look-first
version: 1
title: Read every lamp and then switch on those that are dark
permission: node.drain
parameters:
  nodes: {type: nodes, help: which}
steps:
  - id: see
    do: lamp.read
    for_each: nodes
    stop_after: 2
    with: {node: "{{ item }}"}
  - id: switch
    do: lamp.on
    for_each: nodes
    stop_after: 3
    when: steps.see.output[item].owner == ""
    with: {node: "{{ item }}"}
on_failure: stop
"""
MANY = {**ROOMY, "ending_actions_per_hour": 2000, "ending_actions_per_hour_per_pool": 2000}


def lamps(folder: Path) -> Bench:
    return Bench(folder, {"row": ROW, "look-first": LOOK_FIRST}, limits=MANY)


def row(count: int) -> list[str]:
    return [f"n{number:04}" for number in range(count)]


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a record of a step was looked up, and how often all of them were gone through."""
    counts: Counter[str] = Counter()
    plain_key, plain_output = step_key, places._Steps._output

    def key(*given: object) -> str:
        counts["records"] += 1
        return plain_key(*given)  # type: ignore[arg-type]

    def output(self: places._Steps, name: str) -> object:
        counts["outputs"] += 1
        return plain_output(self, name)

    monkeypatch.setattr("runbooks.places.step_key", key)
    monkeypatch.setattr(places._Steps, "_output", output)
    return counts


@pytest.mark.parametrize("count", [30, 120])
def test_the_records_that_a_run_goes_through_grow_with_its_targets_and_not_with_their_square(
    tmp_path: Path, scanned: Counter[str], count: int
) -> None:
    bench = lamps(tmp_path)
    run = bench.go(bench.ask("look-first", nodes=row(count)))
    assert run.state is RunState.SUCCEEDED
    assert len(bench.world.effects) == count
    again = 2 * (2 * count // MOST_MOVES + 2)  # each call of `advance` begins at the beginning
    assert scanned["records"] <= 8 * count + again * count
    assert scanned["outputs"] <= 2 * again


@pytest.fixture
def doubted(monkeypatch: pytest.MonkeyPatch) -> list[Next]:
    """Every decision, made once more from a frame that was read anew and knows nothing."""
    made: list[Next] = []
    plain = Following.frame

    def frame(self: Following) -> Frame | None:
        found = plain(self)
        fresh = self._frames.frame(self._id)
        assert found == fresh
        if found is not None and fresh is not None and found.run.state.acts:
            made.append(next_step(found))
            assert made[-1] == next_step(fresh)
        return found

    monkeypatch.setattr(Following, "frame", frame)
    return made


@pytest.mark.usefixtures("doubted")
@pytest.mark.parametrize("runbook", ["row", "look-first"])
@pytest.mark.parametrize("answers", [[], ["lost"], ["refuse"], ["retry", "", "refuse", "refuse"]])
def test_what_is_known_of_a_run_never_changes_what_it_does_next(
    tmp_path: Path, doubted: list[Next], runbook: str, answers: list[str]
) -> None:
    bench = lamps(tmp_path)
    bench.world.answers = list(answers)
    bench.world.owner["n0002"] = "somebody"
    run = bench.ask(runbook, nodes=row(5))
    for _ in range(6):
        bench.go(run)
        bench.clock.forward(seconds=60)
    assert not bench.run(run).open
    assert len(doubted) > 5


STATES = st.sampled_from(StepState)


@given(st.lists(st.tuples(st.integers(0, 7), STATES), max_size=40), st.integers(1, 4))
def test_what_is_passed_is_the_same_whichever_way_it_was_found_out(
    tmp_path_factory: pytest.TempPathFactory, news: list[tuple[int, StepState]], stop_after: int
) -> None:
    frame = _row_of_eight(tmp_path_factory)
    step = replace(frame.runbook.steps[0], stop_after=stop_after)
    frame = replace(frame, runbook=replace(frame.runbook, steps=(step,)))
    known = places.Known()
    frame.known.share(known)
    for number, state in news:
        key = f"switch@n{number:04}"
        node, output = NodeName(row(8)[number]), {"news": len(frame.run.steps)}
        record = StepRecord(step=step.id, node=node, state=state, output=output)
        after = replace(frame.run, steps={**frame.run.steps, key: record})
        known.change(frame.runbook, frame.run, after, [key])
        frame = replace(frame, run=after, outputs=Outputs(after.steps, lambda output: output))
        fresh = replace(frame)
        frame.known.share(known)
        assert places.passed(frame, step) == places.passed(fresh, step)
        assert outputs(frame) == outputs(fresh)
        for asked in (StepState.INTENDED, StepState.FAILED):
            assert places.keys_at(frame, asked) == places.keys_at(fresh, asked)


def outputs(frame: Frame) -> dict[str, object]:
    """What expressions see of the steps."""
    steps = places.names(frame)["steps"]
    return dict(steps) if isinstance(steps, Mapping) else {}


def test_targets_that_another_step_found_change_with_it(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    frame = _row_of_eight(tmp_path_factory)
    each = replace(frame.runbook.steps[0], for_each="steps.first.output.nodes")
    first = replace(each, id=StepId("first"), for_each=None)
    frame = replace(frame, runbook=replace(frame.runbook, steps=(first, each)))
    known = places.Known()
    for nodes in (["n1", "n2"], ["n3"]):
        record = StepRecord(step=first.id, state=StepState.DONE, output={"nodes": nodes})
        after = replace(frame.run, steps={first.id: record})
        known.change(frame.runbook, frame.run, after, [first.id])
        frame = replace(frame, run=after, outputs=Outputs(after.steps, lambda output: output))
        frame.known.share(known)
        assert places.targets(frame, each) == tuple(nodes)


_EIGHT: list[Frame] = []


def _row_of_eight(folders: pytest.TempPathFactory) -> Frame:
    """The frame of a row of eight lamps that has not begun; made once, for hypothesis asks often."""
    if not _EIGHT:
        bench = lamps(folders.mktemp("eight"))
        frame = Frames(bench.parts).frame(bench.ask("row", nodes=row(8)))
        assert frame is not None
        _EIGHT.append(frame)
        bench.ledger.close()
    return _EIGHT[0]
