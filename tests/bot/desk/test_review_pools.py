"""A budget that cannot be counted is no permission to go without one."""

from types import SimpleNamespace
from typing import Any

import pytest

from actions.contract import Unreadable
from bot.pools import Pools
from config.ids import ClusterName
from config.node_names import NodeName
from tests.runbooks.engine.lamps import FakeClock

LAB = ClusterName("lab")


def pools(**pool: object) -> Pools:
    settings: Any = SimpleNamespace(
        clusters={
            LAB: SimpleNamespace(
                pools={
                    "train": SimpleNamespace(
                        max_out=SimpleNamespace(of=lambda _: 2), boot_time=None, **pool
                    )
                },
                rma=(),
            )
        }
    )
    return Pools(settings, FakeClock(), lambda _: None)


def test_a_pool_of_partitions_is_unknown_before_the_cluster_was_seen() -> None:
    with pytest.raises(Unreadable, match="train"):
        pools(nodes=None, partitions=("train",)).of(LAB, NodeName("gpu-1"))


def test_a_pool_of_named_nodes_needs_no_look_at_the_cluster() -> None:
    found = pools(nodes=("gpu-1",), partitions=()).of(LAB, NodeName("gpu-1"))
    assert found is not None
    assert found.max_out == 2
