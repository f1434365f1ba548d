"""A few nodes of each cluster are asked now and then, and doctor says what is wrong with the way."""

from dataclasses import replace
from datetime import timedelta

from actions.cluster import NodeBase
from bot.diagnostics import Finding
from bot.inventory import Inventory
from bot.node_checks import EVERY, NodeChecks
from config.node_names import NodeName
from tests.actions.fakes import CLUSTER, FakeCluster, make_node
from tests.bot.test_cluster_checks import HandClock


def _cluster(count: int) -> FakeCluster:
    names = [NodeName(f"gpu-{number:02}") for number in range(count)]
    return FakeCluster(nodes={name: replace(make_node(), name=name) for name in names})


class _Asked:
    def __init__(self, *faults: str) -> None:
        self.nodes: list[NodeName] = []
        self.faults = faults

    def __call__(self, node: NodeName) -> tuple[str, ...]:
        self.nodes.append(node)
        return self.faults


def _checks(cluster: FakeCluster, asked: _Asked, clock: HandClock) -> NodeChecks:
    inventory = Inventory({CLUSTER: cluster})
    inventory.refresh()
    return NodeChecks({CLUSTER: asked}, inventory, clock)


def test_three_nodes_are_asked_and_others_ten_minutes_later() -> None:
    asked, clock = _Asked(), HandClock()
    checks = _checks(_cluster(12), asked, clock)
    checks.tick()
    checks.tick()
    first = list(asked.nodes)
    clock.passed = EVERY
    checks.tick()
    assert first == ["gpu-00", "gpu-04", "gpu-08"]
    assert asked.nodes[3:] == ["gpu-01", "gpu-05", "gpu-09"]
    (finding,) = checks.findings()
    assert finding.good
    assert "gpu-01, gpu-05, gpu-09 is in order" in finding.text


def test_each_fault_is_a_finding_that_says_where() -> None:
    checks = _checks(_cluster(1), _Asked("sudo on gpu-00 says no", "it is root"), HandClock())
    checks.tick()
    assert checks.findings() == (
        Finding(False, f"cluster {CLUSTER}: sudo on gpu-00 says no"),
        Finding(False, f"cluster {CLUSTER}: it is root"),
    )


def test_a_node_that_is_out_is_no_sample() -> None:
    cluster = _cluster(1)
    cluster.nodes = {
        name: replace(node, base=NodeBase.DOWN) for name, node in cluster.nodes.items()
    }
    asked = _Asked("never")
    checks = _checks(cluster, asked, HandClock())
    checks.tick()
    assert asked.nodes == []
    assert [finding.good for finding in checks.findings()] == [True]


def test_a_cluster_that_was_never_read_is_asked_as_soon_as_it_is() -> None:
    cluster, asked, clock = _cluster(1), _Asked(), HandClock(timedelta(minutes=1))
    inventory = Inventory({CLUSTER: cluster})
    checks = NodeChecks({CLUSTER: asked}, inventory, clock)
    checks.tick()
    assert checks.findings() == ()
    inventory.refresh()
    checks.tick()
    assert asked.nodes == ["gpu-00"]
