"""Requeues and updates of jobs in the simulated cluster, as measured on 22.05."""

from datetime import timedelta

import pytest

from actions.contract import Rejected, UnknownJob
from actions.simulated.world import World
from actions.simulated.writes import WriteVerb
from config.ids import JobId
from tests.actions.simulated.small import (
    FRAGILE,
    LIMIT,
    MINUTE,
    N1,
    N3,
    NOTEBOOK,
    SECOND,
    TRAINING,
    WAITING,
    forward,
    job,
    node,
    requeue,
    small_world,
    write,
)

ARRAY: list[dict[str, object]] = [
    {"id": "20_0", "slurm_id": 20, "name": "a", "partition": "train", "nodes": "gpu-1"},
    {"id": "20_1", "slurm_id": 21, "name": "a", "partition": "train", "nodes": "gpu-2"},
    {"id": "20_[2-9]", "slurm_id": 22, "name": "a", "partition": "train"},
]
HET: list[dict[str, object]] = [
    {"id": "30+0", "slurm_id": 30, "name": "h", "partition": "train", "nodes": "gpu-1",
     "het_job": 30},
    {"id": "30+1", "slurm_id": 31, "name": "h", "partition": "train", "nodes": "gpu-2",
     "het_job": 30},
]  # fmt: skip


def change(world: World, number: int, **given: str) -> None:
    write(world, WriteVerb.CHANGE_JOB, job=str(number), **given)


def test_a_requeued_job_keeps_its_priority_and_is_submitted_anew(world: World) -> None:
    change(world, TRAINING, priority="77")
    requeue(world, str(TRAINING))
    seen = job(world, TRAINING)
    assert (seen.state, seen.restarts, seen.nodes) == ("PENDING", 1, ())
    assert seen.priority == 77
    assert seen.submitted_at == world.state.now
    assert seen.eligible_at == world.state.now + timedelta(seconds=120)


def test_a_release_drops_a_priority_that_somebody_set(world: World) -> None:
    change(world, WAITING, priority="77")
    world.plug("hold_job", {"job": WAITING})
    assert job(world, WAITING).priority == 0
    world.plug("release_job", {"job": WAITING})
    assert job(world, WAITING).priority == 1000


def test_what_is_not_running_is_left_alone_without_an_error(world: World) -> None:
    requeue(world, str(WAITING))
    world.plug("end_job", {"job": TRAINING})
    requeue(world, str(TRAINING))
    assert job(world, WAITING).restarts == 0
    assert job(world, TRAINING).state == "COMPLETED"


@pytest.mark.parametrize(
    "number, words",
    [
        (FRAGILE, "Requested operation is presently disabled for job 11"),
        (NOTEBOOK, "Only batch jobs are accepted or processed"),
        (99, "Invalid job id specified for job 99"),
    ],
)
def test_a_refused_requeue_ends_no_job(world: World, number: int, words: str) -> None:
    with pytest.raises(Rejected, match=words):
        requeue(world, str(number))
    assert {each.restarts for each in world.snapshot(LIMIT).jobs} == {0}


def test_of_several_jobs_those_before_the_refused_one_are_requeued(world: World) -> None:
    with pytest.raises(Rejected):
        requeue(world, str(TRAINING), str(FRAGILE))
    assert job(world, TRAINING).restarts == 1
    assert job(world, FRAGILE).state == "RUNNING"


def test_an_array_task_is_requeued_alone_and_the_arrays_number_means_all_that_run() -> None:
    world = small_world(jobs=ARRAY)
    requeue(world, "20_1")
    assert [job(world, number).restarts for number in (20, 21)] == [0, 1]
    requeue(world, "20")
    assert [job(world, number).restarts for number in (20, 21, 22)] == [1, 1, 0]


def test_a_het_job_goes_as_a_whole_and_by_its_leader_only() -> None:
    world = small_world(jobs=HET)
    with pytest.raises(Rejected, match="not heterogeneous job leader"):
        requeue(world, "30+1")
    requeue(world, "30")
    assert [job(world, number).restarts for number in (30, 31)] == [1, 1]


def test_a_job_stays_completing_until_an_unkillable_rank_costs_it_its_node(world: World) -> None:
    world.plug("admin_drain", {"node": N1, "reason": "nw B2 [run-1/x]", "by": "nodewarden"})
    world.plug("freeze_node", {"node": N1})
    requeue(world, str(TRAINING))
    seen = job(world, TRAINING)
    assert (seen.state, seen.restarts) == ("COMPLETING", 1)
    assert node(world, N1).state == "IDLE+COMPLETING+DRAIN"
    forward(world, 91 * SECOND)
    assert job(world, TRAINING).state == "PENDING"
    assert (node(world, N1).reason, node(world, N1).reason_by) == ("Kill task failed", "root")
    assert node(world, N1).state == "IDLE+DRAIN"


def test_a_running_job_takes_a_priority_and_a_reservation_but_no_exclusion(world: World) -> None:
    change(world, TRAINING, priority="5")
    with pytest.raises(Rejected, match="Job is no longer pending execution"):
        change(world, TRAINING, excluded_nodes="gpu-1")
    world.plug("freeze_node", {"node": N1})
    requeue(world, str(TRAINING))
    change(world, TRAINING, excluded_nodes="gpu-1")
    assert (job(world, TRAINING).priority, job(world, TRAINING).excluded_nodes) == (5, "gpu-1")


def test_an_update_that_is_refused_changes_nothing_of_it(world: World) -> None:
    with pytest.raises(Rejected, match="reservation is invalid"):
        change(world, WAITING, priority="5", reservation="nowhere")
    with pytest.raises(Rejected, match="Invalid node name"):
        change(world, WAITING, priority="5", excluded_nodes="gpu-99")
    assert job(world, WAITING).priority == 1000


def test_an_exclusion_replaces_the_one_before_and_the_empty_text_takes_it_away(
    world: World,
) -> None:
    change(world, WAITING, excluded_nodes="gpu-1")
    change(world, WAITING, excluded_nodes="gpu-[2-3]")
    assert job(world, WAITING).excluded_nodes == "gpu-[2-3]"
    change(world, WAITING, excluded_nodes="")
    assert job(world, WAITING).excluded_nodes == ""


def test_a_finished_job_is_not_changed(world: World) -> None:
    world.plug("end_job", {"job": FRAGILE})
    with pytest.raises(Rejected, match="Job has already finished for job 11"):
        change(world, FRAGILE, priority="5")


def test_a_job_that_wants_an_excluded_or_drained_node_never_starts(world: World) -> None:
    shape = {"name": "a", "user": "bo", "partition": "short"}
    world.plug("admin_drain", {"node": "gpu-8", "reason": "x", "by": "dana"})
    numbers = [world.plug("submit_job", {**shape, "held": "JobHeldUser"}) for _ in range(2)]
    for number, name in zip(numbers, ("gpu-7", "gpu-8"), strict=True):
        world.plug("require_nodes", {"job": number, "nodes": name})
    change(world, 14, excluded_nodes="gpu-7")
    for number in numbers:
        world.plug("release_job", {"job": number})
    free = world.plug("submit_job", shape)
    forward(world, 24 * 60 * MINUTE)
    assert [job(world, number).state for number in (14, 15)] == ["PENDING", "PENDING"]
    assert "ReqNodeNotAvail" in job(world, 15).state_reason
    assert isinstance(free, int)
    assert job(world, free).state == "RUNNING"  # nobody waits behind what can never start


def test_one_job_is_told_by_its_own_name(world: World) -> None:
    assert world.fresh_job(JobId("10"), LIMIT) == job(world, TRAINING)
    with pytest.raises(UnknownJob):
        world.fresh_job(JobId("99"), LIMIT)
    array = small_world(jobs=ARRAY)
    assert array.fresh_job(JobId("20_1"), LIMIT).slurm_id == 21
    assert array.fresh_job(JobId("20_5"), LIMIT).slurm_id == 22
    with pytest.raises(UnknownJob):
        array.fresh_job(JobId("20_11"), LIMIT)


def test_a_job_that_the_bot_may_not_see_is_unknown(world: World) -> None:
    world.plug("hide_jobs", {})
    with pytest.raises(UnknownJob):
        world.fresh_job(JobId("10"), LIMIT)
    assert node(world, N3).busy
