"""slurmctld down, slow, killed before it saved."""

import pytest

from actions.cluster import NodeBase
from actions.contract import Unreadable, WriteUnknown
from actions.simulated.world import World
from actions.simulated.writes import Write, WriteVerb
from tests.actions.simulated.small import (
    FRAGILE,
    LIMIT,
    MINUTE,
    N1,
    N7,
    N8,
    SECOND,
    drain,
    forward,
    job,
    node,
    resume,
    small_world,
)


def test_a_killed_controller_forgets_a_drain_of_the_last_five_seconds(world: World) -> None:
    drain(world, N7, "old")
    forward(world, 6 * SECOND)
    drain(world, N8, "young")
    assert node(world, N8).state == "IDLE+DRAIN"
    world.plug("controller_restart", {})
    forward(world, 5 * SECOND)
    assert node(world, N8).state == "IDLE"
    assert (node(world, N7).state, node(world, N7).reason) == ("IDLE+DRAIN", "old")


def test_a_killed_controller_forgets_a_resume_and_the_reason_is_back(world: World) -> None:
    drain(world, N7, "first", by="dana")
    forward(world, MINUTE)
    drain(world, N7, "second")
    resume(world, N7)
    world.plug("controller_restart", {})
    forward(world, 5 * SECOND)
    assert (node(world, N7).reason, node(world, N7).reason_by) == ("first", "dana")


def test_a_controller_stopped_in_order_forgets_nothing(world: World) -> None:
    drain(world, N7, "young")
    world.plug("controller_restart", {"killed": False})
    forward(world, 5 * SECOND)
    assert node(world, N7).draining


def test_a_controller_that_is_down_answers_nothing_and_writes_nothing(world: World) -> None:
    world.plug("controller_down", {})
    with pytest.raises(Unreadable, match="connect failure"):
        world.snapshot(LIMIT)
    with pytest.raises(Unreadable, match="nothing was written"):
        drain(world, N7, "x")
    world.plug("controller_up", {})
    forward(world, 5 * SECOND)
    assert not node(world, N7).draining


def test_nodes_are_unknown_until_a_started_controller_has_heard_of_them(world: World) -> None:
    before = world.snapshot(LIMIT).controller.booted_at
    world.plug("controller_restart", {})
    forward(world, 2 * SECOND)
    assert node(world, N1).base is NodeBase.UNKNOWN
    forward(world, SECOND)
    assert node(world, N1).base is NodeBase.ALLOCATED
    assert world.snapshot(LIMIT).controller.booted_at != before


def test_a_dead_slurmd_gets_the_whole_timeout_again_after_a_controller_start(world: World) -> None:
    world.plug("kill_slurmd", {"node": N1})
    forward(world, 290 * SECOND)
    world.plug("controller_restart", {"killed": False})
    forward(world, 100 * SECOND)
    assert node(world, N1).state == "ALLOCATED+NOT_RESPONDING"
    forward(world, 300 * SECOND)
    assert node(world, N1).base is NodeBase.DOWN


def test_a_job_that_ends_while_the_controller_is_down_is_ended_when_it_is_back(
    world: World,
) -> None:
    world.plug("controller_down", {})
    world.plug("end_job", {"job": FRAGILE})
    forward(world, MINUTE)
    world.plug("controller_up", {})
    forward(world, 5 * SECOND)
    assert job(world, FRAGILE).state == "COMPLETED"


def test_a_job_whose_time_is_up_while_the_controller_is_down_ends_when_it_is_back() -> None:
    world = small_world(
        jobs=[{"id": "1", "name": "a", "partition": "train", "nodes": "gpu-1", "runs_for": 60}]
    )
    world.plug("controller_down", {})
    forward(world, 2 * MINUTE)
    world.plug("controller_up", {})
    forward(world, 5 * SECOND)
    assert job(world, 1).state == "COMPLETED"


def test_a_slow_controller_makes_a_reading_fail_and_a_write_unknown(world: World) -> None:
    world.plug("slow_controller", {"delay": 20})
    with pytest.raises(Unreadable, match="no answer within 5 s"):
        world.fresh_node(N7, LIMIT)
    write = Write(verb=WriteVerb.DRAIN, node=N7, arguments={"reason": "x"}, limit=LIMIT)
    with pytest.raises(WriteUnknown):
        world.write(write)
    world.plug("slow_controller", {"delay": 0})
    assert node(world, N7).draining
