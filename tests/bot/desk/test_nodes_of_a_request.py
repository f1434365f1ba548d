"""Every node that a request names counts, whatever the parameter is called that names it."""

import pytest

from actions.contract import ValueType
from bot.inventory import Inventory
from bot.parameters import parameters
from config.node_names import NodeName, NodeNameError
from config.permissions import Permission
from runbooks.model import Parameter, Runbook
from runbooks.requests import CannotDo
from tests.actions.fakes import CLUSTER, FakeCluster, make_node


def book(*given: Parameter) -> Runbook:
    return Runbook(
        name="swap",
        version=1,
        title="Swap",
        permission=Permission.NODE_DRAIN,
        parameters=given,
        text="",
        digest="",
    )


NODE = Parameter(name="node", type=ValueType.NODE, help="which")
SPARE = Parameter(name="spare", type=ValueType.NODE, help="its place", required=False)
OTHERS = Parameter(name="others", type=ValueType.NODES, help="beside it", required=False)
USUAL = Parameter(
    name="usual", type=ValueType.NODES, help="x", required=False, default=["gpu-8", "gpu-9"]
)


@pytest.fixture
def inventory() -> Inventory:
    names = [NodeName(f"gpu-{number}") for number in range(1, 10)]
    known = Inventory({CLUSTER: FakeCluster(nodes={name: make_node(name=name) for name in names})})
    known.refresh()
    return known


def test_a_second_node_parameter_is_a_target_like_the_first(inventory: Inventory) -> None:
    words = ["gpu-1", "spare=gpu-7", "others=gpu-[3-4]"]
    where, nodes, given = parameters(inventory, book(NODE, SPARE, OTHERS), words, None)
    assert (where, str(nodes)) == (CLUSTER, "gpu-[1,3-4,7]")
    assert given == {"node": "gpu-1", "spare": "gpu-7", "others": ["gpu-3", "gpu-4"]}


def test_nodes_that_stand_in_for_what_was_not_given_count_too(inventory: Inventory) -> None:
    _, nodes, given = parameters(inventory, book(NODE, USUAL), ["gpu-1"], None)
    assert str(nodes) == "gpu-[1,8-9]"
    assert given["usual"] == ["gpu-8", "gpu-9"]


@pytest.mark.parametrize("word", ["spare=gpu-77", "others=gpu-[1-99]", "spare=$(id)", "spare="])
def test_a_second_node_parameter_is_checked_against_the_inventory(
    inventory: Inventory, word: str
) -> None:
    with pytest.raises(NodeNameError):
        parameters(inventory, book(NODE, SPARE, OTHERS), ["gpu-1", word], None)


def test_one_node_is_not_several(inventory: Inventory) -> None:
    with pytest.raises(CannotDo, match="spare is one node"):
        parameters(inventory, book(NODE, SPARE), ["gpu-1", "spare=gpu-[2-3]"], None)
    with pytest.raises(CannotDo, match="works on one node"):
        parameters(inventory, book(NODE, SPARE), ["gpu-[2-3]"], None)


def test_nodes_that_are_given_twice_are_refused(inventory: Inventory) -> None:
    with pytest.raises(CannotDo, match="given twice"):
        parameters(inventory, book(NODE), ["gpu-1", "node=gpu-9"], None)


@pytest.mark.parametrize("text", ["--5", "-", "", "9" * 30, "٣"])
def test_what_is_no_whole_number_is_refused(inventory: Inventory, text: str) -> None:
    count = Parameter(name="count", type=ValueType.NUMBER, help="how many", required=False)
    with pytest.raises(CannotDo, match="whole number"):
        parameters(inventory, book(NODE, count), ["gpu-1", f"count={text}"], None)
    assert parameters(inventory, book(NODE, count), ["gpu-1", "count=-5"], None)[2]["count"] == -5
