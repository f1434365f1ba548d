"""Node rules of the simulated cluster, each as real Slurm 22.05 was seen to behave."""

import pytest

from actions.cluster import NodeBase
from actions.contract import Rejected, UnknownNode
from actions.remote_values import ServiceState
from actions.simulated.world import World
from config.node_names import NodeName
from tests.actions.simulated.small import (
    FRAGILE,
    MINUTE,
    N1,
    N3,
    N5,
    N7,
    NOTEBOOK,
    SECOND,
    TRAINING,
    drain,
    forward,
    job,
    node,
    resume,
    small_world,
    start,
)


def test_a_dead_slurmd_is_marked_at_the_next_ping_and_down_at_slurmd_timeout(world: World) -> None:
    world.plug("kill_slurmd", {"node": N1})
    forward(world, 99 * SECOND)
    assert node(world, N1).state == "ALLOCATED"
    forward(world, 1 * SECOND)
    assert node(world, N1).state == "ALLOCATED+NOT_RESPONDING"
    forward(world, 199 * SECOND)
    assert node(world, N1).base is NodeBase.ALLOCATED
    forward(world, 1 * SECOND)
    assert node(world, N1).state == "DOWN+NOT_RESPONDING"
    assert node(world, N1).reason == "Not responding"


def test_a_slurmd_started_before_the_timeout_keeps_the_job(world: World) -> None:
    world.plug("kill_slurmd", {"node": N1})
    forward(world, 250 * SECOND)
    assert start(world, N1) == 0
    forward(world, 10 * MINUTE)
    assert node(world, N1).state == "ALLOCATED"
    assert (job(world, TRAINING).state, job(world, TRAINING).restarts) == ("RUNNING", 0)


def test_a_drain_overwrites_the_reason_and_ends_no_job(world: World) -> None:
    drain(world, N1, "first", by="dana")
    drain(world, N1, "second")
    assert (node(world, N1).reason, node(world, N1).reason_by) == ("second", "nodewarden")
    assert node(world, N1).state == "ALLOCATED+DRAIN"
    assert job(world, TRAINING).state == "RUNNING"


def test_a_drain_without_a_reason_is_rejected(world: World) -> None:
    with pytest.raises(Rejected, match="must specify a reason"):
        drain(world, N1, "")
    assert not node(world, N1).draining
    assert world.state.effects == []


def test_a_resume_clears_drain_and_fail_and_the_reason_and_is_silent_for_a_second(
    world: World,
) -> None:
    world.plug("admin_fail", {"node": N7, "reason": "fabric", "by": "dana"})
    drain(world, N7, "x")
    resume(world, N7)
    assert (node(world, N7).state, node(world, N7).boot_time) == ("IDLE+NOT_RESPONDING", None)
    forward(world, SECOND)
    assert (node(world, N7).state, node(world, N7).reason) == ("IDLE", "")
    assert node(world, N7).boot_time is not None


def test_a_resume_of_a_node_that_is_not_out_is_rejected(world: World) -> None:
    with pytest.raises(Rejected, match="Invalid node state specified"):
        resume(world, N7)


def test_an_unknown_node_is_named(world: World) -> None:
    with pytest.raises(UnknownNode, match="gpu-99"):
        drain(world, NodeName("gpu-99"), "x")


def test_fewer_gpus_than_configured_is_invalid_and_refuses_resume_until_they_are_back(
    world: World,
) -> None:
    world.plug("shrink_gpus", {"node": N7, "present": 7})
    seen = node(world, N7)
    assert seen.state == "IDLE+DRAIN+INVALID_REG"
    assert seen.reason == "gres/gpu count reported lower than configured (7 < 8)"
    with pytest.raises(Rejected):
        resume(world, N7)
    world.plug("shrink_gpus", {"node": N7, "present": 8})
    assert node(world, N7).state == "IDLE+DRAIN"
    resume(world, N7)
    forward(world, SECOND)
    assert node(world, N7).state == "IDLE"


def test_an_invalid_registration_keeps_the_reason_that_a_person_wrote(world: World) -> None:
    drain(world, N7, "mine", by="dana")
    world.plug("shrink_gpus", {"node": N7, "present": 0})
    assert (node(world, N7).reason, node(world, N7).reason_by) == ("mine", "dana")


def test_a_late_driver_shows_all_gpus_on_the_host_and_none_to_slurm(world: World) -> None:
    world.plug("late_driver", {"node": N7})
    assert node(world, N7).reason.endswith("(0 < 8)")
    assert world.host_facts(N7).gpus_seen == 8
    restart = {"node": N7, "unit": "slurmd"}
    world.plug("stop_service", restart)
    assert start(world, N7) == 0
    assert "INVALID_REG" not in node(world, N7).flags


def test_less_memory_is_named_as_slurm_names_it(world: World) -> None:
    world.plug("shrink_memory", {"node": N7, "present_mib": 1_000_000})
    assert node(world, N7).reason.startswith("Low RealMemory (reported:1000000 < ")


@pytest.mark.parametrize("mode, back", [(0, False), (1, True), (2, True)])
def test_return_to_service_decides_whether_a_silent_node_comes_back(mode: int, back: bool) -> None:
    world = small_world(return_to_service=mode)
    world.plug("kill_slurmd", {"node": N7})
    forward(world, 10 * MINUTE)
    start(world, N7)
    assert node(world, N7).state == ("IDLE" if back else "DOWN")


@pytest.mark.parametrize("mode, back", [(0, False), (1, False), (2, True)])
def test_a_down_node_with_another_reason_comes_back_only_with_mode_two(
    mode: int, back: bool
) -> None:
    world = small_world(return_to_service=mode)
    world.plug("admin_down", {"node": N7, "reason": "RMA 4711", "by": "dana"})
    world.plug("kill_slurmd", {"node": N7})
    start(world, N7)
    assert node(world, N7).state == ("IDLE" if back else "DOWN")


def test_a_down_node_that_is_drained_first_stays_out_when_slurmd_returns(world: World) -> None:
    world.plug("kill_slurmd", {"node": N7})
    forward(world, 10 * MINUTE)
    drain(world, N7, "nw x")
    start(world, N7)
    assert (node(world, N7).state, node(world, N7).reason) == ("DOWN+DRAIN", "nw x")


def test_a_verdict_of_slurmctld_keeps_an_older_reason(world: World) -> None:
    drain(world, N7, "older", by="dana")
    world.plug("kill_host", {"node": N7})
    forward(world, 10 * MINUTE)
    assert (node(world, N7).state, node(world, N7).reason) == (
        "DOWN+DRAIN+NOT_RESPONDING",
        "older",
    )


def test_a_step_that_cannot_be_killed_replaces_the_reason_of_our_drain(world: World) -> None:
    drain(world, N3, "nw x")
    world.plug("stick_steps", {"node": N3})
    world.plug("end_job", {"job": FRAGILE})
    assert node(world, N3).state == "IDLE+COMPLETING+DRAIN"
    assert job(world, FRAGILE).state == "COMPLETING"
    forward(world, 90 * SECOND)
    assert (node(world, N3).reason, node(world, N3).reason_by) == ("Kill task failed", "root")
    assert "COMPLETING" not in node(world, N3).flags


def test_an_unexpected_reboot_downs_a_node_and_moves_boot_time_and_boot_id(world: World) -> None:
    before, facts = node(world, N7), world.host_facts(N7)
    forward(world, MINUTE)
    world.plug("reboot", {"node": N7, "last_words": "mce: [Hardware Error]: CPU 3"})
    after = node(world, N7)
    assert (after.state, after.reason) == ("DOWN", "Node unexpectedly rebooted")
    assert after.boot_time != before.boot_time
    assert world.host_facts(N7).boot_id != facts.boot_id
    assert "Hardware Error" in world.host_facts(N7).previous_boot_tail


def test_a_drained_node_that_reboots_shows_only_its_new_boot_time(world: World) -> None:
    drain(world, N7, "x")
    before = node(world, N7)
    forward(world, MINUTE)
    world.plug("reboot", {"node": N7})
    assert (node(world, N7).state, node(world, N7).reason) == ("IDLE+DRAIN", "x")
    assert node(world, N7).boot_time != before.boot_time


def test_a_reboot_takes_the_work_that_was_on_the_node(world: World) -> None:
    drain(world, N1, "x")
    forward(world, MINUTE)
    world.plug("reboot", {"node": N1, "takes": 60})
    assert job(world, TRAINING).state == "RUNNING"
    forward(world, MINUTE)
    assert (job(world, TRAINING).state, job(world, TRAINING).restarts) == ("PENDING", 1)


def test_a_host_without_power_answers_nothing_and_boots_in_its_time(world: World) -> None:
    world.plug("kill_host", {"node": N7})
    assert not world.reach(N7).reach.host_alive
    assert world.service(N7, "slurmd") is None
    assert start(world, N7) is None
    world.plug("power_on", {"node": N7, "takes": 90})
    forward(world, 89 * SECOND)
    assert not world.reach(N7).reach.host_alive
    forward(world, SECOND)
    assert world.reach(N7).reach.host_alive


def test_slurmd_without_munge_does_not_answer_slurmctld(world: World) -> None:
    world.plug("stop_service", {"node": N7, "unit": "munge"})
    forward(world, 100 * SECOND)
    assert node(world, N7).state == "IDLE+NOT_RESPONDING"


def test_a_start_that_hangs_leaves_the_unit_activating_without_an_exit_code(world: World) -> None:
    world.plug("kill_slurmd", {"node": N7})
    world.plug("hang_service_start", {"node": N7, "unit": "slurmd"})
    assert start(world, N7) is None
    service = world.service(N7, "slurmd")
    assert service is not None
    assert service.state is ServiceState.ACTIVATING


def test_a_start_that_fails_says_so(world: World) -> None:
    world.plug("kill_slurmd", {"node": N7})
    why = "fatal: can't stat gres.conf file /dev/nvidia0"
    world.plug("fail_service_start", {"node": N7, "unit": "slurmd", "why": why})
    assert start(world, N7) == 1
    service = world.service(N7, "slurmd")
    assert service is not None
    assert (service.state, service.detail) == (ServiceState.FAILED, why)


def test_a_node_whose_name_is_not_resolved_is_down_until_it_is(world: World) -> None:
    world.plug("lose_address", {"node": N7})
    forward(world, 10 * MINUTE)
    assert (node(world, N7).base, node(world, N7).reason) == (
        NodeBase.DOWN,
        "NO NETWORK ADDRESS FOUND",
    )
    world.plug("find_address", {"node": N7})
    assert (node(world, N7).state, node(world, N7).reason) == ("IDLE", "")


def test_a_reservation_shows_on_its_nodes_until_it_ends(world: World) -> None:
    world.plug("reserve", {"name": "drv", "nodes": N7, "lasts": 60})
    assert node(world, N7).state == "IDLE+MAINTENANCE+RESERVED"
    forward(world, MINUTE)
    assert node(world, N7).state == "IDLE"


def test_a_node_that_leaves_its_partition_keeps_its_other_one(world: World) -> None:
    world.plug("remove_from_partition", {"node": N5, "partition": "train"})
    assert node(world, N5).partitions == {"short"}
    partitions = {each.name: each.nodes for each in world.snapshot(MINUTE).partitions}
    assert N5 not in partitions["train"]


def test_a_restart_of_slurmd_ends_steps_only_without_killmode_process(world: World) -> None:
    world.plug("shrink_gpus", {"node": N3, "present": 8})
    assert job(world, FRAGILE).state == "RUNNING"
    world.plug("set_kill_mode", {"node": N3, "unit": "slurmd", "mode": "control-group"})
    world.plug("shrink_gpus", {"node": N3, "present": 8})
    assert job(world, FRAGILE).state == "FAILED"


def test_a_job_list_that_is_hidden_is_called_blind(world: World) -> None:
    world.plug("hide_jobs", {})
    seen = world.snapshot(MINUTE)
    assert seen.jobs == ()
    assert seen.blind
    assert seen.nodes[N1].busy


def test_an_interactive_job_ends_with_its_node_and_a_batch_job_comes_back(world: World) -> None:
    for name in ("gpu-1", "gpu-3", "gpu-4"):
        world.plug("kill_host", {"node": name})
    forward(world, 6 * MINUTE)
    assert job(world, TRAINING).restarts == 1
    assert job(world, FRAGILE).state == "NODE_FAIL"
    assert job(world, NOTEBOOK).state == "NODE_FAIL"
