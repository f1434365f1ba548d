"""A plan over many targets sees the cluster once; what is done is looked at afresh all the same."""

from pathlib import Path

import pytest

from actions.contract import Call, Observation
from runbooks.frames import LOOKED_AT_SINGLY
from tests.runbooks.engine.lamp_world import LampOn
from tests.runbooks.engine.lamps import Bench
from tests.runbooks.engine.test_steps import ROOMY, ROW


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    made: list[Call] = []
    plain = LampOn.look

    def look(self: LampOn, call: Call) -> Observation:
        made.append(call)
        return plain(self, call)

    monkeypatch.setattr(LampOn, "look", look)
    return made


@pytest.mark.parametrize("count", [LOOKED_AT_SINGLY, LOOKED_AT_SINGLY + 1])
def test_many_targets_share_one_snapshot_and_each_write_has_a_look_of_its_own(
    tmp_path: Path, looks: list[Call], count: int
) -> None:
    bench = Bench(tmp_path, {"row": ROW}, limits=ROOMY)
    nodes = [f"x{number:02}" for number in range(count)]
    bench.go(bench.ask("row", nodes=list(nodes)))
    planning, acting = looks[:count], looks[count:]
    assert len({id(call.seen) for call in planning}) == 1
    assert (planning[0].seen is not None) == (count > LOOKED_AT_SINGLY)
    assert [call.node for call in acting] == nodes
    assert [call.seen for call in acting] == [None] * count
