"""What `scontrol reboot` does to a node of the simulated cluster, as measured on 22.05."""

import pytest

from actions.simulated.world import World
from actions.simulated.writes import WriteVerb
from tests.actions.simulated.small import (
    FRAGILE,
    LIMIT,
    MINUTE,
    N3,
    N7,
    SECOND,
    drain,
    forward,
    job,
    node,
    resume,
    small_world,
    write,
)

OURS = "nw A1 [run-1/x]"


def reboot(world: World, name: str) -> None:
    write(world, WriteVerb.REBOOT, name)


def test_a_drained_node_is_drained_after_its_reboot_and_in_another_boot(world: World) -> None:
    before = world.host_facts(N7).boot_id
    drain(world, N7, OURS)
    reboot(world, N7)
    seen = node(world, N7)
    assert (seen.state, seen.reason) == ("DOWN+DRAIN+REBOOT_ISSUED", f"{OURS} : reboot issued")
    assert seen.reason_by == "slurm"
    forward(world, 2 * MINUTE)
    seen = node(world, N7)
    assert (seen.state, seen.reason) == ("IDLE+DRAIN", f"{OURS} : reboot issued")
    assert world.host_facts(N7).boot_id != before
    assert seen.boot_time == world.host_facts(N7).booted_at


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_a_node_that_nobody_drained_comes_back_idle_without_a_reason(mode: int) -> None:
    world = small_world(return_to_service=mode)
    reboot(world, N7)
    assert node(world, N7).reason == "reboot requested : reboot issued"
    forward(world, 2 * MINUTE)
    assert (node(world, N7).state, node(world, N7).reason) == ("IDLE", "")


def test_a_reboot_waits_for_the_nodes_work_and_keeps_new_work_away(world: World) -> None:
    reboot(world, N3)
    forward(world, MINUTE)
    assert node(world, N3).state == "ALLOCATED+REBOOT_REQUESTED"
    assert job(world, FRAGILE).state == "RUNNING"
    world.plug("end_job", {"job": FRAGILE})
    assert node(world, N3).state == "DOWN+REBOOT_ISSUED"
    assert job(world, FRAGILE).state == "COMPLETED"


def test_a_second_reboot_changes_nothing(world: World) -> None:
    drain(world, N7, OURS)
    reboot(world, N7)
    before = node(world, N7)
    reboot(world, N7)
    assert node(world, N7) == before
    forward(world, 10 * MINUTE)
    assert world.state.hosts[N7].boots == 2


def test_a_reboot_that_times_out_takes_the_drain_away() -> None:
    world = small_world(resume_timeout=60)
    drain(world, N7, OURS)
    reboot(world, N7)
    forward(world, 61 * SECOND)
    seen = node(world, N7)
    assert (seen.state, seen.reason) == ("DOWN", f"{OURS} : reboot issued : reboot timed out")


def test_without_a_reboot_program_the_reboot_is_taken_and_times_out() -> None:
    world = small_world(reboot_program="", resume_timeout=60)
    drain(world, N7, OURS)
    before = world.host_facts(N7).boot_id
    reboot(world, N7)
    forward(world, 2 * MINUTE)
    assert world.host_facts(N7).boot_id == before
    assert node(world, N7).state == "DOWN"
    assert world.snapshot(LIMIT).controller.reboot_program == ""


def test_a_resume_cancels_a_reboot_that_waits(world: World) -> None:
    reboot(world, N3)
    resume(world, N3)
    forward(world, 10 * SECOND)
    world.plug("end_job", {"job": FRAGILE})
    forward(world, 10 * MINUTE)
    assert world.state.hosts[N3].boots == 1


def test_nobody_misses_a_node_that_is_rebooting() -> None:
    world = small_world(slurmd_timeout=30, boot_takes=300)
    drain(world, N7, OURS)
    reboot(world, N7)
    forward(world, 2 * MINUTE)
    assert node(world, N7).state == "DOWN+DRAIN+REBOOT_ISSUED"
    forward(world, 4 * MINUTE)
    assert node(world, N7).state == "IDLE+DRAIN"


def test_set_down_ends_the_work_on_the_node_at_once(world: World) -> None:
    write(world, WriteVerb.DOWN, N3, reason="nw A1 [run-1/x]")
    assert node(world, N3).state == "DOWN"
    assert job(world, FRAGILE).state == "NODE_FAIL"
