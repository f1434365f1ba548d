"""Hands for the verbs on nodes, over the fakes."""

from datetime import timedelta

from actions.node.settings import Hands, NodeSettings
from config.node_names import NodeName
from tests.actions.fakes import CLUSTER, NODE, FakeCluster, FakeNodes

POOL = frozenset({NODE, NodeName("gpu-02"), NodeName("gpu-03"), NodeName("gpu-04")})


def hands(
    cluster: FakeCluster,
    nodes: FakeNodes | None = None,
    *,
    hands_off: str = "",
    history: bool = True,
    boot_time: timedelta | None = None,
) -> Hands:
    """Everything a verb needs."""
    return Hands(
        clusters={CLUSTER: cluster},
        nodes=nodes or FakeNodes(),
        settings=NodeSettings(
            hands_off=lambda _cluster, _node: hands_off,
            pool=lambda _cluster, _node: POOL,
            boot_time=lambda _cluster, _node: boot_time,
        ),
        changes={CLUSTER: cluster},
        histories={CLUSTER: cluster} if history else {},
    )
