"""The ready scenes, and what a description refuses."""

from datetime import UTC, datetime

import pytest

from actions.simulated.description import describe
from actions.simulated.scenes import HOSTILE_NAMES, HOSTILE_REASON, demo, scale
from config.node_names import NodeName
from tests.actions.simulated.small import LIMIT, SECOND, SMALL, forward, job, node, small_world


def test_the_demo_has_the_racks_the_big_job_and_the_old_drain() -> None:
    seen = demo().snapshot(LIMIT)
    big = next(each for each in seen.jobs if each.name == "llama-70b")
    assert (big.state, big.node_count, big.gpus) == ("RUNNING", 64, 512)
    assert big.nodes[0] == "gpu-001"
    assert len({rack for name in big.nodes for rack in seen.nodes[name].features}) == 8
    old = seen.nodes[NodeName("gpu-073")]
    assert (old.state, old.reason, old.reason_by) == ("IDLE+DRAIN", HOSTILE_REASON, "dana")
    assert old.reason_at is not None
    assert (seen.taken_at - old.reason_at).days == 7
    assert {each.name for each in seen.partitions} == {"train", "short", "spare"}


def test_the_demo_has_the_jobs_that_readers_get_wrong() -> None:
    seen = demo().snapshot(LIMIT)
    assert {each.name for each in seen.jobs} >= set(HOSTILE_NAMES)
    assert {str(each.id) for each in seen.jobs} >= {"72_0", "72_1", "72_[2-9]"}
    assert {each.state_reason for each in seen.jobs} >= {
        "Resources",
        "Dependency",
        "JobHeldUser",
        "JobArrayTaskLimit",
    }


def test_the_demo_is_the_same_every_time() -> None:
    assert demo().snapshot(LIMIT) == demo().snapshot(LIMIT)


def test_the_demo_begins_when_its_clock_says() -> None:
    begin = datetime(2031, 5, 6, tzinfo=UTC)
    assert demo(begin).snapshot(LIMIT).taken_at == begin


def test_a_demo_left_alone_for_a_day_stays_as_it_is() -> None:
    world = demo()
    before = {name: each.state for name, each in world.snapshot(LIMIT).nodes.items()}
    forward(world, 86_400 * SECOND)
    assert {name: each.state for name, each in world.snapshot(LIMIT).nodes.items()} == before


def test_a_large_cluster_has_its_nodes_half_of_them_busy() -> None:
    seen = scale(1_000, jobs=50).snapshot(LIMIT)
    assert len(seen.nodes) == 1_000
    assert sum(each.busy for each in seen.nodes.values()) == 500
    assert len(seen.jobs) == 550
    assert len({rack for each in seen.nodes.values() for rack in each.features}) == 125


def test_what_a_description_sets_is_already_saved() -> None:
    world = demo()
    world.plug("controller_restart", {"killed": True})
    forward(world, 10 * SECOND)
    assert node(world, NodeName("gpu-073")).reason == HOSTILE_REASON


def test_a_described_plug_is_pulled_at_its_time() -> None:
    world = small_world(plugs=[{"plug": "kill_host", "node": "gpu-7", "after": 30}])
    forward(world, 29 * SECOND)
    assert world.reach(NodeName("gpu-7")).reach.host_alive
    forward(world, SECOND)
    assert not world.reach(NodeName("gpu-7")).reach.host_alive


def test_an_array_task_and_a_het_part_keep_their_numbers() -> None:
    world = small_world(
        jobs=[
            {"id": "5_3", "slurm_id": 8, "name": "a", "partition": "train", "nodes": "gpu-1"},
            {"id": "20+1", "slurm_id": 21, "het_job": 20, "name": "h", "partition": "train"},
        ]
    )
    assert (job(world, 8).array_job, job(world, 8).array_task) == (5, "3")
    assert (job(world, 21).het_job, job(world, 21).id) == (20, "20+1")


@pytest.mark.parametrize(
    "change, words",
    [
        ({"nodes": []}, "nodes"),
        ({"nodez": 1}, "nodez"),
        ({"nodes": [{"names": "gpu-[1-30000000]"}]}, "at most"),
        ({"nodes": [{"names": "gpu-1"}, {"names": "gpu-[1-2]"}]}, "gpu-1 is described twice"),
        ({"partitions": [{"name": "p", "nodes": "gpu-9"}]}, "unknown node gpu-9"),
        ({"jobs": [{"id": "1", "name": "a", "partition": "no"}]}, "no partition 'no'"),
        ({"plugs": [{"plug": "nosuch"}]}, "no plug 'nosuch'"),
        ({"plugs": [{"plug": "nosuch", "after": 9}]}, "no plug 'nosuch'"),
        ({"plugs": [{"plug": "kill_host", "node": "gpu-1", "after": "soon"}]}, "whole number"),
        ({"starts_at": "2026-03-02T02:00:00"}, "time zone"),
        ({"return_to_service": 3}, "return_to_service"),
    ],
)
def test_a_description_that_does_not_fit_is_refused_with_the_place(
    change: dict[str, object], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        describe({**SMALL, **change})
