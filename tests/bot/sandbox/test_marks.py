"""A node's state is seen without colours, and the worst that is true of it is what is seen."""

from hypothesis import given
from hypothesis import strategies as st

from actions.cluster import KNOWN_FLAGS, NodeBase
from bot.sandbox import grid
from bot.sandbox.playground import NodeView

STATES = st.builds(
    lambda base, flags: NodeView(name="gpu-07", words=(base, *flags)),
    st.sampled_from([base.value for base in NodeBase]),
    st.lists(st.sampled_from(sorted(KNOWN_FLAGS)), max_size=4, unique=True),
)


def _node(*words: str) -> NodeView:
    return NodeView(name="gpu-07", words=words)


def test_no_two_marks_share_a_shape_or_a_letter() -> None:
    assert len({mark.shape for mark in grid.MARKS}) == len(grid.MARKS)
    assert len({mark.letter for mark in grid.MARKS}) == len(grid.MARKS)


def test_each_kind_of_state_has_its_mark() -> None:
    seen = {
        _node("IDLE"): grid.IDLE,
        _node("MIXED"): grid.BUSY,
        _node("IDLE", "DRAIN"): grid.DRAINED,
        _node("ALLOCATED", "DRAIN"): grid.DRAINING,
        _node("IDLE", "COMPLETING", "DRAIN"): grid.DRAINING,
        _node("IDLE", "MAINTENANCE"): grid.RESERVED,
        _node("IDLE", "DRAIN", "INVALID_REG"): grid.INVALID,
        _node("ALLOCATED", "NOT_RESPONDING"): grid.SILENT,
        _node("DOWN", "DRAIN", "NOT_RESPONDING"): grid.DOWN,
        _node("UNKNOWN"): grid.UNKNOWN,
    }
    assert {node: grid.mark(node) for node in seen} == seen


@given(STATES)
def test_what_is_out_of_service_never_looks_idle_or_busy(node: NodeView) -> None:
    out = {"DRAIN", "FAIL", "INVALID_REG", "NOT_RESPONDING", "MAINTENANCE"} & set(node.words)
    if out or node.words[0] in {"DOWN", "ERROR"}:
        assert grid.mark(node) not in {grid.IDLE, grid.BUSY}


@given(st.lists(STATES))
def test_the_legend_tells_every_mark_that_is_shown_and_no_other(nodes: list[NodeView]) -> None:
    shown = {grid.mark(node).means for node in nodes}
    told = grid.legend(nodes)
    assert {mark.means for mark in grid.MARKS if f"{mark.text} {mark.means}" in told} == shown
