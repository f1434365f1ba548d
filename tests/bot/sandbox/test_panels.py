"""The panels show the cluster and pull its plugs; what cannot be pulled is told to the person."""

from collections.abc import Iterator

import pytest

from bot.sandbox.panels import Board
from bot.sandbox.sandbox import Sandbox
from bot.standin.page import Panel, PanelRow
from bot.standin.records import SlackError


@pytest.fixture
def panels(still: Sandbox) -> Iterator[tuple[Panel, Panel, Panel]]:
    board = Board(still.playground)
    board.start()
    nodes, chosen, cluster = board.panels()
    yield nodes, chosen, cluster
    board.stop()


def _text(panel: Panel) -> str:
    return "\n".join(row.text for row in panel.rows())


def _cells(panel: Panel) -> dict[str, str]:
    rows: list[PanelRow] = list(panel.rows())
    return {press: words for words, press in rows[0].grid}


def test_a_killed_slurmd_is_seen_in_the_grid_after_the_controller_noticed(
    panels: tuple[Panel, Panel, Panel],
) -> None:
    nodes, chosen, cluster = panels
    assert _cells(nodes)["gpu-03"] == "03 □I"
    nodes.press("gpu-03")
    chosen.press("kill slurmd")
    for _ in range(3):
        cluster.press("clock +1 min")
    assert "NOT_RESPONDING" in _text(chosen) or "DOWN" in _text(chosen)
    assert _cells(nodes)["gpu-03"] in {"03 ?N", "03 ✖X"}


def test_the_chosen_node_is_told_with_its_reason(panels: tuple[Panel, Panel, Panel]) -> None:
    nodes, chosen, cluster = panels
    nodes.press("gpu-04")
    chosen.press("a person drains it")
    assert "gpu-04: IDLE+DRAIN" in _text(chosen)
    assert "Reason: fan is loud, vendor comes" in _text(chosen)
    chosen.press("a person resumes it")
    cluster.press("clock +1 min")  # RESUME passes through NOT_RESPONDING, as a real one does
    assert "gpu-04: IDLE (idle)" in _text(chosen)


def test_jobs_come_and_go(panels: tuple[Panel, Panel, Panel]) -> None:
    _, _, cluster = panels
    assert _text(cluster) == "no job"
    cluster.press("submit a job")
    assert "evaluation (ben) RUNNING gpu-07 restarts 0" in _text(cluster)
    cluster.press("end the newest job")
    assert "RUNNING" not in _text(cluster)
    with pytest.raises(SlackError, match="no job runs"):
        cluster.press("end the newest job")


def test_a_gpu_that_is_gone_can_be_put_back(panels: tuple[Panel, Panel, Panel]) -> None:
    nodes, chosen, _ = panels
    nodes.press("gpu-05")
    chosen.press("lose a GPU")
    assert "INVALID_REG" in _text(chosen)
    chosen.press("all GPUs back")
    assert "INVALID_REG" not in _text(chosen)


def test_without_a_controller_the_last_picture_stays_and_the_trouble_is_told(
    panels: tuple[Panel, Panel, Panel],
) -> None:
    nodes, _, cluster = panels
    cluster.press("controller down")
    assert len(_cells(nodes)) == 12
    assert nodes.rows()[0].text
    cluster.press("controller up")
    assert not nodes.rows()[0].text


def test_a_node_that_is_not_there_cannot_be_chosen(panels: tuple[Panel, Panel, Panel]) -> None:
    with pytest.raises(SlackError, match="no node gpu-99"):
        panels[0].press("gpu-99")


@pytest.mark.parametrize("plug", ["host dies", "power on", "reboot", "start slurmd", "kill slurmd"])
def test_every_plug_of_a_node_can_be_pulled(panels: tuple[Panel, Panel, Panel], plug: str) -> None:
    nodes, chosen, _ = panels
    nodes.press("gpu-09")
    chosen.press(plug)
    assert _text(chosen).startswith("gpu-09: ")
