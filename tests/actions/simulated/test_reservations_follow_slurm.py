"""Reservations of the simulated cluster, as measured on 22.05."""

import pytest

from actions.contract import Rejected
from actions.simulated.world import World
from actions.simulated.writes import WriteVerb
from config.node_names import NodeName
from tests.actions.simulated.small import (
    LIMIT,
    MINUTE,
    N3,
    N7,
    N8,
    NOTEBOOK,
    SECOND,
    TRAINING,
    WAITING,
    forward,
    job,
    node,
    requeue,
    reserve,
    small_world,
    write,
)


def point(world: World, number: int, name: str) -> None:
    write(world, WriteVerb.CHANGE_JOB, job=str(number), reservation=name)


def test_a_reservation_holds_its_nodes_for_its_user(world: World) -> None:
    reserve(world, "nw-1", "gpu-7,gpu-8")
    assert node(world, N7).state == "IDLE+RESERVED"
    (seen,) = world.fresh_reservations(LIMIT)
    assert (seen.name, seen.nodes, seen.users, seen.active) == ("nw-1", (N7, N8), ("ann",), True)
    number = world.plug("submit_job", {"name": "a", "user": "bo", "partition": "short"})
    assert isinstance(number, int)
    assert not {N7, N8} & set(job(world, number).nodes)
    hers = world.plug(
        "submit_job", {"name": "b", "user": "ann", "partition": "short", "held": "JobHeldUser"}
    )
    assert isinstance(hers, int)
    point(world, hers, "nw-1")
    world.plug("release_job", {"job": hers})
    assert job(world, hers).nodes == (N7,)


def test_maintenance_shows_on_the_node(world: World) -> None:
    reserve(world, "nw-1", "gpu-7", flags="MAINT,IGNORE_JOBS")
    assert node(world, N7).state == "IDLE+MAINTENANCE+RESERVED"


@pytest.mark.parametrize(
    "name, nodes, more, words",
    [
        ("nw-1", "gpu-6", {}, "Duplicate reservation name"),
        ("nw-2", "gpu-8", {}, "overlaps with another reservation"),
        ("nw-2", "gpu-99", {}, "Invalid node name"),
        ("nw-2", "gpu-3", {"flags": ""}, "Requested nodes are busy"),
        ("nw-2", "gpu-6", {"user": ""}, "Users"),
    ],
)
def test_what_slurm_does_not_reserve_is_refused_in_its_words(
    world: World, name: str, nodes: str, more: dict[str, str], words: str
) -> None:
    reserve(world, "nw-1", "gpu-7,gpu-8")
    with pytest.raises(Rejected, match=words):
        reserve(world, name, nodes, **more)
    assert [each.name for each in world.fresh_reservations(LIMIT)] == ["nw-1"]


def test_maintenance_may_lie_over_another_reservation(world: World) -> None:
    reserve(world, "nw-1", "gpu-7")
    reserve(world, "nw-2", "gpu-7", flags="MAINT,IGNORE_JOBS")
    assert len(world.fresh_reservations(LIMIT)) == 2


def test_a_reservation_is_given_exactly_the_nodes_of_an_update(world: World) -> None:
    reserve(world, "nw-1", "gpu-7,gpu-8")
    write(world, WriteVerb.SET_RESERVATION_NODES, name="nw-1", nodes="gpu-8")
    assert world.fresh_reservations(LIMIT)[0].nodes == (N8,)
    assert node(world, N7).state == "IDLE"
    with pytest.raises(Rejected, match="Invalid node name"):
        write(world, WriteVerb.SET_RESERVATION_NODES, name="nw-1", nodes="gpu-8,gpu-99")
    assert world.fresh_reservations(LIMIT)[0].nodes == (N8,)


def test_a_reservation_is_not_deleted_while_a_job_points_to_it(world: World) -> None:
    reserve(world, "nw-1", "gpu-[1-3]")
    point(world, TRAINING, "nw-1")
    with pytest.raises(Rejected, match="reservation is in use"):
        write(world, WriteVerb.DELETE_RESERVATION, name="nw-1")
    with pytest.raises(Rejected, match="reservation is in use"):
        world.plug("release_reservation", {"name": "nw-1"})
    point(world, TRAINING, "")
    write(world, WriteVerb.DELETE_RESERVATION, name="nw-1")
    assert world.fresh_reservations(LIMIT) == ()
    with pytest.raises(Rejected, match="reservation is invalid"):
        write(world, WriteVerb.DELETE_RESERVATION, name="nw-1")


@pytest.mark.parametrize("number, words", [(TRAINING, "invalid"), (WAITING, "Access denied")])
def test_a_job_points_only_to_a_reservation_that_its_user_may_use(number: int, words: str) -> None:
    world = small_world()
    reserve(world, "nw-1", "gpu-7", user="bo")
    with pytest.raises(Rejected, match=words):
        point(world, number, "nw-1" if words == "Access denied" else "nw-2")


def test_the_end_of_a_reservation_ends_the_jobs_that_point_to_it_and_holds_those_that_wait(
    world: World,
) -> None:
    reserve(world, "nw-1", "gpu-[1-2]")
    point(world, TRAINING, "nw-1")
    point(world, WAITING, "nw-1")
    forward(world, 10 * MINUTE)
    ended, waiting = job(world, TRAINING), job(world, WAITING)
    assert (ended.state, ended.state_reason, ended.reservation) == ("TIMEOUT", "TimeLimit", "")
    assert (waiting.state, waiting.priority, waiting.reservation) == ("RESV_DEL_HOLD", 0, "")
    assert world.fresh_reservations(LIMIT) == ()
    assert job(world, NOTEBOOK).state == "RUNNING"


def test_the_end_of_a_flexible_reservation_ends_no_job(world: World) -> None:
    reserve(world, "nw-1", "gpu-[1-2]", flags="IGNORE_JOBS,FLEX")
    point(world, TRAINING, "nw-1")
    forward(world, 10 * MINUTE)
    assert (job(world, TRAINING).state, job(world, TRAINING).reservation) == ("RUNNING", "")


@pytest.mark.parametrize(
    "flags, nodes", [("IGNORE_JOBS", [(N8,), ()]), ("IGNORE_JOBS,FLEX", [(N8,), (N7,)])]
)
def test_jobs_take_their_reservations_nodes_first_and_others_only_where_it_is_flexible(
    flags: str, nodes: list[tuple[NodeName, ...]]
) -> None:
    hers = {"name": "a", "user": "ann", "partition": "short", "held": "JobHeldUser"}
    world = small_world(jobs=[{"id": str(number), **hers} for number in (1, 2)])
    for name in ("gpu-5", "gpu-6"):
        world.plug("admin_drain", {"node": name, "reason": "x", "by": "dana"})
    reserve(world, "nw-1", "gpu-8", flags=flags)
    for number in (1, 2):
        point(world, number, "nw-1")
        world.plug("release_job", {"job": number})
    assert [job(world, number).nodes for number in (1, 2)] == nodes


def test_the_ground_is_held_for_a_requeued_job_against_a_full_queue() -> None:
    world = small_world(
        jobs=[{"id": "10", "name": "a", "partition": "train", "nodes": "gpu-[1-4]"}]
    )
    world.plug("admin_drain", {"node": "gpu-5", "reason": "spare", "by": "nodewarden"})
    world.plug("fill_queue", {"partition": "train", "count": 20})
    world.plug("freeze_node", {"node": "gpu-1"})
    world.plug("admin_drain", {"node": "gpu-1", "reason": "nw B2", "by": "nodewarden"})
    forward(world, SECOND)
    reserve(world, "nw-1", "gpu-[2-5]", minutes="60")
    world.plug("admin_resume", {"node": "gpu-5"})
    requeue(world, "10")
    point(world, 10, "nw-1")
    forward(world, 5 * MINUTE)
    back = job(world, 10)
    assert (back.state, back.restarts) == ("RUNNING", 1)
    assert set(back.nodes) == {NodeName(f"gpu-{number}") for number in (2, 3, 4, 5)}


def test_without_a_reservation_one_day_jobs_take_the_nodes_of_a_requeued_job() -> None:
    world = small_world(
        jobs=[{"id": "10", "name": "a", "partition": "train", "nodes": "gpu-[1-4]"}]
    )
    world.plug("fill_queue", {"partition": "train", "count": 20})
    requeue(world, "10")
    forward(world, 2 * SECOND)
    taken = [each.nodes for each in world.snapshot(LIMIT).jobs if each.state == "RUNNING"]
    assert {(NodeName(f"gpu-{number}"),) for number in (1, 2, 3, 4)} <= set(taken)
    forward(world, 10 * MINUTE)
    assert job(world, 10).state == "PENDING"


def test_a_killed_controller_forgets_what_was_written_to_reservations_and_jobs(
    world: World,
) -> None:
    reserve(world, "old", "gpu-7")
    forward(world, 6 * SECOND)
    write(world, WriteVerb.DELETE_RESERVATION, name="old")
    reserve(world, "young", "gpu-[1-3]")
    point(world, TRAINING, "young")
    write(world, WriteVerb.CHANGE_JOB, job=str(WAITING), priority="7", excluded_nodes="gpu-2")
    world.plug("controller_failover", {"takes": 10})
    forward(world, MINUTE)
    assert [each.name for each in world.fresh_reservations(LIMIT)] == ["old"]
    assert job(world, TRAINING).reservation == ""
    assert (job(world, WAITING).priority, job(world, WAITING).excluded_nodes) == (1000, "")
    assert not node(world, N3).flags & {"RESERVED"}
