"""Job rules of the simulated cluster."""

import pytest

from actions.contract import Rejected
from actions.simulated.world import World
from tests.actions.simulated.small import (
    FRAGILE,
    LIMIT,
    MINUTE,
    N1,
    N2,
    N3,
    N7,
    NOTEBOOK,
    SECOND,
    TRAINING,
    WAITING,
    drain,
    forward,
    job,
    node,
    small_world,
)


def test_a_requeued_job_counts_its_restart_at_once_and_waits_two_minutes(world: World) -> None:
    world.plug("kill_slurmd", {"node": N1})
    forward(world, 300 * SECOND)
    seen = job(world, TRAINING)
    assert (seen.state, seen.restarts, seen.state_reason) == ("PENDING", 1, "BeginTime")
    assert seen.nodes == ()
    forward(world, 119 * SECOND)
    assert job(world, TRAINING).state == "PENDING"


def test_a_requeued_job_is_completing_while_one_of_its_nodes_does_not_answer(world: World) -> None:
    world.plug("cut_off", {"node": N1})
    world.plug("requeue_job", {"job": TRAINING})
    seen = job(world, TRAINING)
    assert (seen.state, seen.restarts) == ("COMPLETING", 1)
    assert "COMPLETING" in node(world, N1).flags
    assert not node(world, N2).busy
    assert [each.slurm_id for each in world.fresh_jobs(N1, LIMIT)] == [TRAINING]
    world.plug("cut_off", {"node": N1, "cut": False})
    forward(world, 100 * SECOND)
    assert job(world, TRAINING).state == "PENDING"


def test_a_restarted_job_has_a_new_start_time_and_does_not_use_the_sick_node() -> None:
    world = small_world(
        jobs=[{"id": "10", "name": "a", "partition": "train", "nodes": "gpu-[1-2]"}]
    )
    before = job(world, TRAINING)
    world.plug("kill_host", {"node": N1})
    forward(world, 300 * SECOND)
    forward(world, 120 * SECOND)
    after = job(world, TRAINING)
    assert (after.state, after.restarts) == ("RUNNING", 1)
    assert N1 not in after.nodes
    assert after.started_at != before.started_at


@pytest.mark.parametrize(
    "number, words",
    [(FRAGILE, "presently disabled"), (NOTEBOOK, "Only batch jobs"), (WAITING, "pending")],
)
def test_what_slurm_does_not_requeue_is_refused_in_its_words(
    world: World, number: int, words: str
) -> None:
    with pytest.raises(Rejected, match=words):
        world.plug("requeue_job", {"job": number})


def test_no_job_starts_on_a_drained_node(world: World) -> None:
    drain(world, N7, "x")
    number = world.plug("submit_job", {"name": "a", "user": "bo", "partition": "short"})
    assert isinstance(number, int)
    assert N7 not in job(world, number).nodes
    two = world.plug(
        "submit_job", {"name": "b", "user": "bo", "partition": "short", "shape": "3x8"}
    )
    assert isinstance(two, int)
    assert (job(world, two).state, job(world, two).state_reason) == ("PENDING", "Resources")


def test_an_ended_job_is_listed_for_a_while_and_holds_nothing(world: World) -> None:
    world.plug("end_job", {"job": FRAGILE})
    assert job(world, FRAGILE).state == "COMPLETED"
    assert world.fresh_jobs(N3, LIMIT) == ()
    forward(world, 300 * SECOND)
    assert FRAGILE not in {each.slurm_id for each in world.snapshot(LIMIT).jobs}


def test_a_job_behind_a_partition_that_is_down_says_so(world: World) -> None:
    world.plug("partition_state", {"partition": "train", "to": "DOWN"})
    forward(world, SECOND)
    assert job(world, WAITING).state_reason == "PartitionDown"
    assert job(world, TRAINING).state == "RUNNING"


def test_a_dependent_job_waits_for_its_parent_and_never_starts_after_a_failure() -> None:
    jobs = [
        {"id": "1", "name": "train", "partition": "train", "nodes": "gpu-1"},
        {"id": "2", "name": "eval", "partition": "train", "after_ok": 1},
    ]
    world = small_world(jobs=jobs)
    assert job(world, 2).state_reason == "Dependency"
    world.plug("end_job", {"job": 1, "outcome": "FAILED"})
    assert job(world, 2).state_reason == "DependencyNeverSatisfied"
    other = small_world(jobs=jobs)
    other.plug("end_job", {"job": 1})
    assert job(other, 2).state == "RUNNING"


def test_a_suspended_job_still_holds_its_node(world: World) -> None:
    world.plug("suspend_job", {"job": FRAGILE})
    assert job(world, FRAGILE).holds_nodes
    assert node(world, N3).busy


def test_a_job_ends_by_itself_after_its_run_time(world: World) -> None:
    timed = small_world(
        jobs=[{"id": "1", "name": "a", "partition": "train", "nodes": "gpu-1", "runs_for": 60}]
    )
    forward(timed, 59 * SECOND)
    assert job(timed, 1).state == "RUNNING"
    forward(timed, SECOND)
    assert job(timed, 1).state == "COMPLETED"


def test_a_job_without_gpus_takes_a_whole_node() -> None:
    world = small_world(
        jobs=[
            {"id": "1", "name": "a", "partition": "train", "nodes": "gpu-1", "gpus_per_node": 0},
            {"id": "2", "name": "b", "partition": "train", "gpus_per_node": 1},
        ]
    )
    forward(world, MINUTE)
    assert node(world, N1).state == "ALLOCATED"
    assert N1 not in job(world, 2).nodes
