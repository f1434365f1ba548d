"""What the grid reads of a real controller's text."""

from pathlib import Path

import pytest

from actions.node.settings import NodeSettings
from bot.sandbox.slurm import QUIET_AFTER_START, nodes_in

RECORDINGS = Path(__file__).parents[2] / "recordings"


def test_state_star_and_reason_are_read() -> None:
    text = (
        "NodeName=gpu-01 Arch=x86_64 State=IDLE+DRAIN ThreadsPerCore=1 Extra= "
        'Reason=Xid 79 "x" State=IDLE [root] [nwoperator@2026-11-30T17:20:00]\n'
        "NodeName=gpu-02 State=DOWN* ThreadsPerCore=1\n"
    )
    drained, down = nodes_in(text)
    assert (drained.name, drained.words) == ("gpu-01", ("IDLE", "DRAIN"))
    assert drained.reason == 'Xid 79 "x" State=IDLE [root]'
    assert (down.name, down.words, down.reason) == ("gpu-02", ("DOWN", "NOT_RESPONDING"), "")


@pytest.mark.parametrize("path", sorted(RECORDINGS.glob("*/scontrol-o-nodes.txt")))
def test_every_recorded_node_is_read(path: Path) -> None:
    text = path.read_text("utf-8", errors="backslashreplace")
    assert len(nodes_in(text)) == text.count("NodeName=")


def test_the_demo_waits_as_long_as_the_bot_does() -> None:
    settings = NodeSettings(
        hands_off=lambda _cluster, _node: "", pool=lambda _cluster, _node: frozenset()
    )
    assert settings.quiet_after_start == QUIET_AFTER_START
