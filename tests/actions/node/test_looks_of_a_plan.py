"""The looks of one plan share what was seen of the cluster, and ask all hosts in one question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from actions.cluster import Overview, Reservation
from actions.contract import Standing
from actions.node.drain import Drain
from actions.node.settings import Hands, NodeSettings
from actions.remote_values import BootId
from config.node_names import NodeName
from tests.actions.fakes import (
    BOOT,
    CLUSTER,
    NODE,
    NOW,
    FakeCluster,
    FakeNodes,
    make_call,
    make_node,
)

MANY = tuple(NodeName(f"gpu-{number:02}") for number in range(1, 6))


@dataclass(slots=True)
class Asked(FakeNodes):
    """Hosts of which one is silent; counts the questions."""

    questions: list[tuple[NodeName, ...]] = field(default_factory=list)

    def boot_ids(self, nodes: Sequence[NodeName]) -> Mapping[NodeName, BootId]:
        self.questions.append(tuple(nodes))
        said = {node: BootId(value=BOOT) for node in nodes}
        return {**said, **{node: BootId(lost="silent") for node in nodes if node == MANY[3]}}


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster(nodes={name: make_node(name=name) for name in MANY})


@pytest.fixture
def nodes() -> Asked:
    return Asked()


@pytest.fixture
def drain(cluster: FakeCluster, nodes: Asked) -> Drain:
    rules = NodeSettings(hands_off=lambda *_: "", pool=lambda *_: frozenset())
    return Drain(Hands(clusters={CLUSTER: cluster}, nodes=nodes, settings=rules))


def test_all_hosts_of_a_plan_are_asked_in_one_question(
    drain: Drain, cluster: FakeCluster, nodes: Asked
) -> None:
    seen = Overview.of(cluster.snapshot(), MANY)
    boots = [drain.look(make_call(node=node, seen=seen)).boot_id for node in MANY]
    assert boots == [BOOT, BOOT, BOOT, "unknown", BOOT]
    assert nodes.questions == [MANY]


def test_the_look_before_a_write_asks_its_own_host_afresh(drain: Drain, nodes: Asked) -> None:
    assert [drain.look(make_call()).boot_id for _ in range(2)] == [BOOT, BOOT]
    assert nodes.questions == [(NODE,), (NODE,)]


@pytest.mark.parametrize("active", [True, False])
def test_a_reservation_holds_its_nodes_in_a_plan_as_in_a_single_look(
    drain: Drain, cluster: FakeCluster, active: bool
) -> None:
    held = Reservation(
        name="maint", nodes=MANY[:2], starts_at=NOW, ends_at=NOW + timedelta(1), active=active
    )
    cluster.reservations = (replace(held, name="other", nodes=MANY[4:]), held)
    seen = Overview.of(cluster.snapshot(), MANY)
    for node in MANY:
        alone, planned = make_call(node=node), make_call(node=node, seen=seen)
        assert drain.look(planned) == replace(
            drain.look(alone), boot_id=drain.look(planned).boot_id
        )
    first = drain.look(make_call(node=MANY[0], seen=seen)).standing
    assert first is (Standing.FOREIGN if active else Standing.NOT_SO)
