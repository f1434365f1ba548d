"""What hands.md says of requeues, reservations, partitions and reboots, shown by a running Slurm.

Each test takes nodes of its own and leaves them idle. One of them waits for Slurm's 120 seconds.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from actions.cluster import Job, JobChange, ReservationWish
from actions.contract import Rejected, UnknownJob, UnknownNode
from actions.shell import Runner
from actions.slurm.cli import SlurmCli
from actions.slurm.tools import SlurmSettings
from bot.testbed import SlurmTestbed
from config.ids import ClusterName, JobId
from config.node_names import NodeName
from config.system_clock import SystemClock

pytestmark = pytest.mark.slurm

SLEEP = "#!/bin/sh\nexec sleep 1000\n"
FIRST_ENDS = '#!/bin/sh\n[ "$SLURM_ARRAY_TASK_ID" = 0 ] || exec sleep 1000\n'
REASON = "nw A1 [run-7/0a1b2c3d]"
GROUND = "nw-run-7-ground-0a1b2c3d"
SICK, TWO, THREE, SPARE = (NodeName(f"gpu-0{number}") for number in (1, 2, 3, 4))
LAST = NodeName("gpu-12")
REQUEUE_DELAY = 240.0
"""Slurm's own 120 seconds, and its scheduler's turn."""


@pytest.fixture
def client(slurm_testbed: SlurmTestbed) -> SlurmCli:
    settings = SlurmSettings(
        cluster=ClusterName(slurm_testbed.options.cluster),
        slurm_conf=str(slurm_testbed.slurm_conf),
        own_user=slurm_testbed.bot_user,
    )
    return SlurmCli(settings, Runner(), SystemClock(), lambda time: None)


@contextmanager
def cancelled(testbed: SlurmTestbed, numbers: list[int]) -> Iterator[None]:
    try:
        yield
    finally:
        for number in numbers:
            testbed.cancel(number)


def state(client: SlurmCli, job: JobId) -> str:
    return client.fresh_job(job).state


def wish(testbed: SlurmTestbed, *nodes: NodeName, name: str = GROUND) -> ReservationWish:
    user = testbed.options.job_user
    return ReservationWish(
        name=name,
        nodes=nodes,
        user=user,
        length=timedelta(minutes=10),
        flags=frozenset({"IGNORE_JOBS", "FLEX"}),  # as requeue-job makes it
    )


def test_a_requeued_job_starts_on_the_ground_that_is_held_for_it(
    slurm_testbed: SlurmTestbed, client: SlurmCli
) -> None:
    testbed = slurm_testbed
    elsewhere = ("--exclusive", "--exclude=gpu-[05-08]")
    number = testbed.submit(SLEEP, "--nodes=3", *elsewhere)
    job = JobId(str(number))
    testbed.wait_for_job(number, "RUNNING")
    before = client.fresh_job(job)
    assert before.nodes == (SICK, TWO, THREE)
    rivals: list[int] = []
    with cancelled(testbed, rivals):
        client.drain(SICK, REASON)
        client.create_reservation(wish(testbed, TWO, THREE, SPARE))
        rivals += [testbed.submit(SLEEP, *elsewhere, "--time=1-0") for _ in range(4)]
        try:
            client.requeue((job,))
            requeued = client.fresh_job(job)
            assert (requeued.restarts, requeued.priority) == (1, before.priority)
            client.change_job(
                job, JobChange(reservation=GROUND, excluded_nodes="gpu-01,gpu-[05-08]")
            )
            testbed.wait_for(lambda: state(client, job) == "PENDING", "the job to wait")
            _its_turn_comes_later(client, job, before)
            with pytest.raises(Rejected, match="in use"):
                client.delete_reservation(GROUND)
            testbed.wait_for_job(number, "RUNNING", REQUEUE_DELAY)
            _it_runs_on_its_ground(client, job, rivals)
            with pytest.raises(Rejected, match="in use"):
                client.delete_reservation(GROUND)
            client.change_job(job, JobChange(reservation=""))
            client.delete_reservation(GROUND)
            after = client.fresh_job(job)
            assert (after.state, after.reservation, after.restarts) == ("RUNNING", "", 1)
            assert client.fresh_reservations() == ()
        finally:
            testbed.cancel(number)
            _forget_ground(testbed, client)
    client.resume(SICK)
    testbed.wait_for_states(SICK, "IDLE")


def _its_turn_comes_later(client: SlurmCli, job: JobId, before: Job) -> None:
    waiting = client.fresh_job(job)
    assert waiting.eligible_at is not None
    assert before.started_at is not None
    assert waiting.eligible_at - before.started_at > timedelta(seconds=100)
    assert waiting.priority == before.priority
    assert waiting.reservation == GROUND


def _it_runs_on_its_ground(client: SlurmCli, job: JobId, rivals: list[int]) -> None:
    running = client.fresh_job(job)
    assert running.nodes == (TWO, THREE, SPARE)
    assert running.batch_host == TWO
    assert {state(client, JobId(str(rival))) for rival in rivals} == {"PENDING"}


def _forget_ground(testbed: SlurmTestbed, client: SlurmCli) -> None:
    if any(found.name == GROUND for found in client.fresh_reservations()):
        testbed.delete_reservation(GROUND)


def test_of_an_array_only_what_still_runs_starts_again(
    slurm_testbed: SlurmTestbed, client: SlurmCli
) -> None:
    number = slurm_testbed.submit(FIRST_ENDS, "--array=0-1", "--partition=spare")
    ended, running = JobId(f"{number}_0"), JobId(f"{number}_1")
    with cancelled(slurm_testbed, [number]):
        slurm_testbed.wait_for(
            lambda: (state(client, ended), state(client, running)) == ("COMPLETED", "RUNNING"),
            "one task to end and one to run",
        )
        client.requeue((ended, running))
        tasks = [client.fresh_job(task) for task in (ended, running)]
        assert [task.restarts for task in tasks] == [0, 1]
        assert tasks[0].state == "COMPLETED"
        with pytest.raises(UnknownJob, match="name one of"):
            client.fresh_job(JobId(str(number)))


def test_a_job_that_says_no_requeue_stays_as_it_is(
    slurm_testbed: SlurmTestbed, client: SlurmCli
) -> None:
    number = slurm_testbed.submit(SLEEP, "--no-requeue", "--partition=spare", "--exclusive")
    with cancelled(slurm_testbed, [number]):
        slurm_testbed.wait_for_job(number, "RUNNING")
        with pytest.raises(Rejected, match="disabled"):
            client.requeue((JobId(str(number)),))
        found = client.fresh_job(JobId(str(number)))
        assert (found.state, found.restarts, found.requeue) == ("RUNNING", 0, False)
        assert not found.shared


def test_a_list_with_an_unknown_node_applies_in_part_but_not_through_us(
    slurm_testbed: SlurmTestbed, client: SlurmCli
) -> None:
    whole = ("gpu-11", "gpu-12")
    with pytest.raises(UnknownNode, match="gpu-77"):
        client.set_partition_nodes("spare", [NodeName("gpu-11"), NodeName("gpu-77")])
    untouched = slurm_testbed.partition("spare")["TotalNodes"]
    try:
        with pytest.raises(RuntimeError):
            slurm_testbed.as_admin(
                "scontrol", "update", "PartitionName=spare", "Nodes=gpu-11,gpu-77"
            )
        halved = slurm_testbed.partition("spare")["TotalNodes"]
    finally:
        client.set_partition_nodes("spare", [NodeName(node) for node in whole])
    restored = next(one for one in client.snapshot().partitions if one.name == "spare")
    assert (untouched, restored.nodes, restored.total_nodes) == ("2", whole, 2)
    assert halved != "2"


def test_a_reboot_through_us_keeps_the_drain(slurm_testbed: SlurmTestbed, client: SlurmCli) -> None:
    before, booted = slurm_testbed.boot_id(LAST), slurm_testbed.node(LAST)["BootTime"]
    client.drain(LAST, REASON)
    client.reboot(LAST)
    slurm_testbed.wait_for(lambda: slurm_testbed.boot_id(LAST) != before, "a new boot id")
    # Resumed before it has heard of the new boot, slurmctld calls that one unexpected.
    slurm_testbed.wait_for(
        lambda: slurm_testbed.node(LAST)["BootTime"] != booted, "slurmctld to hear of the new boot"
    )
    slurm_testbed.wait_for_states(LAST, "IDLE", "DRAIN")
    assert client.fresh_node(LAST).reason.startswith(REASON)
    client.resume(LAST)
    slurm_testbed.wait_for_states(LAST, "IDLE")


def test_a_drain_of_the_last_seconds_is_forgotten_with_a_killed_controller(
    slurm_testbed: SlurmTestbed, client: SlurmCli
) -> None:
    slurm_testbed.stop_controller()  # saves what other tests did
    slurm_testbed.start_controller()
    slurm_testbed.wait_for_states(LAST, "IDLE")
    saved = slurm_testbed.saved_nodes()
    client.drain(LAST, REASON)
    seen = client.fresh_node(LAST)
    slurm_testbed.forget_since(saved)
    slurm_testbed.wait_for_states(LAST, "IDLE")
    assert (seen.state, client.fresh_node(LAST).reason) == ("IDLE+DRAIN", "")
