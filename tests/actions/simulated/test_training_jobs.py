"""Training jobs of the simulated cluster: steps, checkpoints as files, restarts, and two writers."""

import copy
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actions.contract import Unreadable
from actions.simulated import job_files
from actions.simulated.training_rules import TWO_WRITERS
from actions.simulated.world import World
from tests.actions.simulated.small import (
    MINUTE,
    N1,
    N2,
    N7,
    SECOND,
    TRAINING,
    Served,
    forward,
    job,
    requeue,
    small_world,
)

FOLDER, LOG = "/ckpt/llama", "/home/ann/llama.out"


def training_world(written_by: str = "dcp", **changes: object) -> World:
    trains = {"folder": FOLDER, "format": written_by, "step_takes": 1, "checkpoint_every": 100}
    return small_world(
        jobs=[
            {"id": "10", "name": "llama", "partition": "train", "nodes": "gpu-[1-2]",
             "stdout": LOG, "training": {**trains, **changes}},
        ]
    )  # fmt: skip


def step(world: World) -> int:
    return world.state.trainings[TRAINING].step


def names(world: World, folder: str = FOLDER) -> list[str]:
    return [each.name for each in job_files.listed(world.state, N7, "ann", folder, "*").entries]


def writers(world: World) -> list[str]:
    return [each.why for each in world.state.history if each.what == TWO_WRITERS]


def test_a_training_goes_on_and_leaves_checkpoints() -> None:
    world = training_world()
    forward(world, 250 * SECOND)
    assert step(world) == 250
    assert names(world) == ["step-100", "step-200"]
    assert names(world, f"{FOLDER}/step-200") == [".metadata", "__0_0.distcp", "__1_0.distcp"]
    read = job_files.tail(world.state, N7, "ann", LOG, 1 << 17)
    assert "iteration      250/" in read.text.splitlines()[-1]
    assert read.modified == world.state.now


def test_a_checkpoint_that_is_being_written_is_not_whole() -> None:
    world = training_world()
    forward(world, 202 * SECOND)
    assert ".metadata" not in names(world, f"{FOLDER}/step-200")
    world.plug("end_job", {"job": TRAINING})
    forward(world, MINUTE)
    assert ".metadata" not in names(world, f"{FOLDER}/step-200")


@pytest.mark.parametrize(
    "written_by, whole, tracker",
    [
        ("megatron", "iter_0000100", ("latest_checkpointed_iteration.txt", "100")),
        ("deepspeed", "global_step100", ("latest", "global_step100")),
        ("nemo", "step=100", None),
        ("orbax", "100", None),
        ("hf", "checkpoint-100", None),
        ("marker", "step-100", None),
    ],
)
def test_each_format_looks_as_its_writer_leaves_it(
    written_by: str, whole: str, tracker: tuple[str, str] | None
) -> None:
    world = training_world(written_by)
    forward(world, 201 * SECOND)
    assert whole in names(world)
    if tracker is not None:
        read = job_files.tail(world.state, N7, "ann", f"{FOLDER}/{tracker[0]}", 100)
        assert read.text == tracker[1]
    unfinished = {"nemo": "step=200-unfinished", "orbax": "200.orbax-checkpoint-tmp-1"}
    assert unfinished.get(written_by, whole) in names(world)


def test_a_restarted_job_goes_on_from_its_last_whole_checkpoint() -> None:
    world = training_world()
    forward(world, 202 * SECOND)
    requeue(world, "10")
    assert step(world) == 202
    forward(world, 121 * SECOND)
    assert job(world, TRAINING).state == "RUNNING"
    assert step(world) == 101
    forward(world, 100 * SECOND)
    assert names(world) == ["step-100", "step-200"]
    assert step(world) == 201


def test_a_rank_in_d_state_stops_all_ranks_of_the_job() -> None:
    world = training_world()
    forward(world, 50 * SECOND)
    world.plug("freeze_node", {"node": N2})
    forward(world, 10 * MINUTE)
    assert step(world) == 50
    assert {each.state for each in job_files.stacks(world.state, N2, TRAINING)} == {"D"}
    assert {each.state for each in job_files.stacks(world.state, N1, TRAINING)} == {"S"}
    assert job_files.stacks(world.state, N7, TRAINING) == ()
    with pytest.raises(Unreadable, match="stuck"):
        job_files.listed(world.state, N2, "ann", FOLDER, "*")
    world.plug("freeze_node", {"node": N2, "frozen": False})
    forward(world, 10 * SECOND)
    assert step(world) == 60


def test_a_cut_off_node_goes_on_writing_beside_the_restarted_job() -> None:
    world = training_world()
    world.plug("cut_link", {"node": N1})
    forward(world, 150 * SECOND)
    assert step(world) == 150
    forward(world, 10 * MINUTE)  # Slurm has set it DOWN and has started the job elsewhere
    assert (job(world, TRAINING).state, job(world, TRAINING).restarts) == ("RUNNING", 1)
    assert writers(world) == ["gpu-1: a rank of restart 0 writes beside restart 1"]


def test_power_that_is_taken_before_the_restart_leaves_one_writer() -> None:
    world = training_world()
    world.plug("cut_link", {"node": N1})
    forward(world, 250 * SECOND)
    world.plug("kill_host", {"node": N1})
    forward(world, 10 * MINUTE)
    assert job(world, TRAINING).restarts == 1
    assert writers(world) == []


def test_a_dead_slurmd_leaves_its_ranks_and_one_that_answers_again_ends_them() -> None:
    world = training_world()
    world.plug("kill_slurmd", {"node": N1})
    forward(world, 301 * SECOND)
    assert job(world, TRAINING).state == "PENDING"
    assert TRAINING in world.state.hosts[N1].ranks
    world.plug("start_slurmd", {"node": N1})
    assert TRAINING not in world.state.hosts[N1].ranks
    forward(world, 10 * MINUTE)
    assert writers(world) == []


def test_a_thawed_rank_that_was_told_to_end_ends_instead_of_writing() -> None:
    world = training_world()
    world.plug("freeze_node", {"node": N1})
    requeue(world, "10")
    forward(world, 10 * MINUTE)
    assert job(world, TRAINING).state == "RUNNING"
    assert TRAINING in world.state.hosts[N1].ranks
    world.plug("freeze_node", {"node": N1, "frozen": False})
    forward(world, MINUTE)
    assert writers(world) == []
    assert world.state.hosts[N1].ranks.get(TRAINING) in {None, 1}


def test_the_files_of_one_user_are_not_shown_to_another() -> None:
    world = training_world()
    forward(world, 150 * SECOND)
    for user, path in (("eve", FOLDER), ("ann", "/nowhere")):
        with pytest.raises(Unreadable, match="No such file"):
            job_files.listed(world.state, N7, user, path, "*")


def test_what_the_nodes_program_reads_comes_over_the_socket(served: Served) -> None:
    served.plugs.pull("train_job", job=TRAINING, folder=FOLDER, format="megatron")
    served.plugs.forward(timedelta(seconds=150))
    seen = served.nodes.file_list(N7, "ann", FOLDER, "iter_*")
    assert [each.name for each in seen.entries] == ["iter_0000100"]
    assert served.nodes.file_tail(N7, "ann", f"{FOLDER}/latest_checkpointed_iteration.txt", 9).text
    assert len(served.nodes.stacks(N1, TRAINING)) == 8
    assert "slurmd" in served.nodes.unit_log(N7, "slurmd", 10).output
    assert served.nodes.tcp_try(N7, "gpu-1", [22])[0].answer == "open"
    served.plugs.pull("cut_link", node=N1)
    assert served.nodes.tcp_try(N7, "gpu-1", [22])[0].answer == "silent"
    with pytest.raises(Unreadable):
        served.nodes.stacks(N1, TRAINING)


@settings(max_examples=40, deadline=None)
@given(
    frozen=st.integers(0, 400),
    requeued=st.integers(0, 400),
    cuts=st.lists(st.integers(1, 1199), max_size=8),
)
def test_a_jump_of_time_gives_the_same_training_as_many_small_ones(
    frozen: int, requeued: int, cuts: list[int]
) -> None:
    world = training_world()
    forward(world, frozen * SECOND)
    world.plug("freeze_node", {"node": N2})
    forward(world, requeued * SECOND)
    world.plug("freeze_node", {"node": N2, "frozen": False})
    requeue(world, "10")
    other = copy.deepcopy(world)
    begun = world.state.now
    for cut in sorted(cuts):
        other.tick(begun + cut * SECOND)
    other.tick(begun + 1200 * SECOND)
    world.tick(begun + 1200 * SECOND)
    assert other.state.trainings == world.state.trainings
