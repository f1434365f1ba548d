"""Answers that look at the cluster: times as people read them, and what is not to be trusted yet."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from actions.simulated.plugs import Plugs
from tests.bot.whole import Whole, whole

STAMP = re.compile(r"\d{4}-\d{2}-\d{2}T")


@pytest.fixture
def bot(tmp_path: Path) -> Iterator[Whole]:
    with whole(tmp_path) as there:
        yield there


def test_a_plan_names_the_jobs_that_go_on_and_until_when(bot: Whole) -> None:
    told = bot.told("ann", "plan drain-node gpu-070 reason=x")
    assert re.search(r"job 75 \(dana\) goes on until (\d\d-\d\d )?\d\d:\d\d UTC", told)
    assert not STAMP.search(told)


def test_a_node_is_shown_right_after_a_start_of_slurmctld_with_a_warning(
    bot: Whole, tmp_path: Path
) -> None:
    plugs = Plugs(path=tmp_path / "sim.sock")
    plugs.pull("controller_down", killed=False)
    plugs.pull("controller_up")
    bot.bot.inventory.refresh()
    first, *facts = bot.says("ann", "node gpu-070").lines
    assert re.fullmatch(
        r"gpu-070 on sim; slurmctld of sim has just started: wait until (\d\d-\d\d )?\d\d:\d\d UTC",
        first,
    )
    assert any(line.startswith("base: ") for line in facts)
