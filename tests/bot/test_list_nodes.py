"""`list nodes`: state, Reason, owner and jobs as last seen, for people and for programs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actions.simulated.plugs import Plugs
from bot.replies import ReplyKind
from tests.bot.whole import Whole, whole


@pytest.fixture
def bot(tmp_path: Path) -> Iterator[Whole]:
    with whole(tmp_path) as there:
        plugs = Plugs(path=tmp_path / "sim.sock")
        plugs.pull("admin_drain", node="gpu-070", reason="RMA 4711", by="dana")
        there.bot.inventory.refresh()
        yield there


def row(bot: Whole, text: str, name: str) -> dict[str, Any]:
    rows: Any = bot.says("ann", text).data["nodes"]
    return dict(next(one for one in rows if one["node"] == name))


def test_a_node_is_told_with_state_reason_owner_and_jobs(bot: Whole) -> None:
    assert row(bot, "list nodes", "gpu-070") == {
        "cluster": "sim",
        "node": "gpu-070",
        "state": "MIXED+DRAIN",
        "reason": "RMA 4711",
        "owner": "dana",
        "jobs": [{"id": "75", "user": "dana"}],
    }
    told = bot.told("ann", "list nodes drain")
    assert "gpu-070 MIXED+DRAIN by dana: RMA 4711; job 75 (dana)" in told


def test_equal_nodes_stand_on_one_line_and_apart_for_programs(bot: Whole) -> None:
    reply = bot.says("ann", "list nodes")
    assert len(reply.data["nodes"]) == 80  # type: ignore[arg-type]
    assert len(reply.lines) < 40
    assert any(line.startswith("gpu-[") for line in reply.lines)


def test_the_list_is_filtered_by_state_by_name_and_by_what_is_out(bot: Whole) -> None:
    def names(text: str) -> set[str]:
        rows: Any = bot.says("ann", text).data["nodes"]
        return {one["node"] for one in rows}

    assert "gpu-070" in names("list nodes drain") & names("list nodes OUT")
    assert "gpu-070" not in names("list nodes allocated")
    assert names("list nodes --like gpu-07") == {f"gpu-07{digit}" for digit in range(10)}
    assert bot.told("ann", "list nodes invalid_reg") == "no nodes"
    wrong = bot.says("ann", "list nodes drian")
    assert (wrong.kind, "did you mean drain" in wrong.lines[0]) == (ReplyKind.MISREAD, True)


def test_what_our_ledger_holds_is_said_before_what_slurm_tells(bot: Whole) -> None:
    bot.says("adm", 'hands-off gpu-070 "firmware test"')
    assert "firmware test" in str(row(bot, "list nodes", "gpu-070")["owner"])
    assert "hands off: adm: firmware test" in bot.told("ann", "list nodes drain")


def test_only_nodes_are_listed_by_state(bot: Whole) -> None:
    assert bot.says("ann", "list runs drain").kind is ReplyKind.MISREAD
    assert "ann: oncall" in bot.told("ann", "list people")
