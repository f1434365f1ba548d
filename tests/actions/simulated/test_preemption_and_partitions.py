"""Preemption in the simulated cluster, and edits of its partitions."""

import pytest

from actions.contract import Rejected
from actions.simulated.world import World
from actions.simulated.writes import WriteVerb
from config.node_names import NodeName
from tests.actions.simulated.small import (
    FRAGILE,
    LIMIT,
    MINUTE,
    N7,
    N8,
    SECOND,
    TRAINING,
    forward,
    job,
    node,
    small_world,
    write,
)

SHARED = [
    {"name": "low", "nodes": "gpu-[1-2]", "preempt_mode": "REQUEUE"},
    {"name": "high", "nodes": "gpu-[1-2]", "priority_tier": 10},
]
LOW = [
    {"id": "1", "name": "a", "partition": "low", "nodes": "gpu-1", "priority": 10, "qos": "spot"},
    {"id": "2", "name": "b", "partition": "low", "nodes": "gpu-2", "priority": 20, "qos": "own"},
]


def submitted(world: World, partition: str) -> int:
    number = world.plug("submit_job", {"name": "x", "user": "bo", "partition": partition})
    assert isinstance(number, int)
    return number


def test_the_higher_tier_pushes_the_cheapest_job_away() -> None:
    world = small_world(partitions=SHARED, jobs=LOW, preempt_type="preempt/partition_prio")
    number = submitted(world, "high")
    assert job(world, number).state == "RUNNING"
    assert (job(world, 1).state, job(world, 1).restarts) == ("PENDING", 1)
    assert job(world, 2).state == "RUNNING"
    assert world.snapshot(LIMIT).controller.preempt_type == "preempt/partition_prio"
    equal = submitted(world, "low")
    world.plug("set_priority", {"job": equal, "priority": 9000})
    assert job(world, equal).state == "PENDING"
    tiers = {each.name: each.priority_tier for each in world.snapshot(LIMIT).partitions}
    assert tiers == {"low": 1, "high": 10}


def test_a_qos_pushes_away_only_those_it_is_said_to() -> None:
    world = small_world(
        partitions=SHARED,
        jobs=[
            *LOW,
            {"id": "3", "name": "c", "partition": "low", "qos": "prod", "priority": 1},
        ],
        preempt_type="preempt/qos",
        qos_preempts={"prod": ["own"]},
    )
    forward(world, SECOND)
    assert [job(world, number).state for number in (1, 2, 3)] == ["RUNNING", "PENDING", "RUNNING"]


def test_nobody_is_pushed_away_where_slurm_conf_says_none_or_nothing_helps() -> None:
    world = small_world(partitions=SHARED, jobs=LOW)
    assert job(world, submitted(world, "high")).state == "PENDING"
    other = small_world(partitions=SHARED, jobs=LOW, preempt_type="preempt/partition_prio")
    other.plug("admin_drain", {"node": "gpu-1", "reason": "x", "by": "dana"})
    wide = other.plug(
        "submit_job", {"name": "x", "user": "bo", "partition": "high", "shape": "2x8"}
    )
    assert isinstance(wide, int)
    assert job(other, wide).state == "PENDING"
    assert {job(other, number).state for number in (1, 2)} == {"RUNNING"}


def edit(world: World, nodes: str) -> None:
    write(world, WriteVerb.SET_PARTITION_NODES, partition="short", nodes=nodes)


def shown(world: World) -> tuple[tuple[str, ...], int]:
    found = next(each for each in world.snapshot(LIMIT).partitions if each.name == "short")
    return found.nodes, found.total_nodes


def test_an_edit_of_a_partition_is_the_whole_list(world: World) -> None:
    edit(world, "gpu-4,gpu-7")
    assert shown(world) == (("gpu-4", "gpu-7"), 2)
    assert node(world, NodeName("gpu-4")).partitions == {"train", "short"}
    assert node(world, N8).partitions == frozenset()


def test_a_list_with_an_unknown_node_is_refused_and_half_applied(world: World) -> None:
    before = shown(world)[0]
    with pytest.raises(Rejected, match="Invalid node name"):
        edit(world, "gpu-4,gpu-99,gpu-7")
    assert shown(world) == (before, 2)
    assert node(world, NodeName("gpu-4")).partitions == {"train", "short"}
    assert node(world, N7).partitions == {"short"}
    assert node(world, N8).partitions == frozenset()


@pytest.mark.parametrize("plug", ["reconfigure", "controller_restart", "controller_failover"])
def test_an_edit_of_a_partition_is_gone_when_slurm_conf_is_read_again(
    world: World, plug: str
) -> None:
    before = shown(world)
    edit(world, "gpu-4")
    forward(world, MINUTE)
    world.plug(plug, {})
    forward(world, 5 * MINUTE)
    assert shown(world) == before
    assert node(world, N8).partitions == {"short"}


def test_an_unknown_partition_is_refused(world: World) -> None:
    with pytest.raises(Rejected, match="Invalid partition name"):
        write(world, WriteVerb.SET_PARTITION_NODES, partition="nowhere", nodes="gpu-1")


def test_an_exclusive_job_shares_its_node_with_nobody() -> None:
    world = small_world(
        jobs=[
            {"id": "1", "name": "a", "partition": "train", "nodes": "gpu-1", "gpus_per_node": 1,
             "shared": False},
            {"id": "2", "name": "b", "partition": "train", "gpus_per_node": 1},
            {"id": "3", "name": "c", "partition": "train", "constraint": "rack2"},
        ]
    )  # fmt: skip
    forward(world, SECOND)
    assert job(world, 2).nodes == ("gpu-2",)
    assert "rack2" in node(world, job(world, 3).nodes[0]).features
    assert (job(world, 1).shared, job(world, 3).features) == (False, "rack2")


def test_the_lines_of_the_cluster_do_not_change_the_other_jobs(world: World) -> None:
    edit(world, "gpu-8")
    assert {job(world, number).state for number in (TRAINING, FRAGILE)} == {"RUNNING"}
