"""The ground is held: on a running Slurm a stuck job runs again before twenty others, past its checkpoint.

Slurm itself waits 120 s with a requeued job; the rest of the time is the bot's. That nothing but the bot
does it is shown by the second test: without it the same queue takes the nodes.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from actions.catalogue import ClusterSite
from actions.cluster import Job
from actions.remote.unreached import UnreachedNodes
from actions.shell import Runner
from actions.slurm.cli import SlurmCli
from actions.slurm.history import AccountingHistory
from actions.slurm.tools import SlurmSettings
from actions.spares import SpareRules
from bot.testbed import SlurmTestbed
from bot.testbed.options import TestbedOptions
from bot.testbed.training import CoupledJob
from config.ids import ClusterName, JobId
from config.node_names import NodeName
from config.system_clock import SystemClock
from runbooks.machine import RunState
from runbooks.run import Run
from tests.actions.job.bench import Bench
from tests.testbed.fixture import fresh_folder

pytestmark = pytest.mark.slurm

JOB_NODES = ("gpu-01", "gpu-02", "gpu-03", "gpu-04")
SICK, SPARE = NodeName("gpu-02"), NodeName("gpu-05")
GROUND = {"gpu-01", "gpu-03", "gpu-04", "gpu-05"}
WAITING = 20
SLEEP = "#!/bin/sh\nexec sleep 86400\n"
CLOCK = SystemClock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """A full cluster with a stuck job, and the bot."""

    testbed: SlurmTestbed
    client: SlurmCli
    bench: Bench
    job: CoupledJob
    waiting: tuple[int, ...]

    def seen(self) -> Job:
        return self.client.fresh_job(JobId(str(self.job.id)))

    def ask(self) -> Run:
        """The run to its end, with two persons who say yes."""
        return self.bench.to_the_end(self.bench.ask("requeue-job", job=str(self.job.id), node=SICK))

    def others(self) -> set[str]:
        """States of the jobs that wait."""
        return {self.testbed.job(number)["JobState"] for number in self.waiting}

    def is_stuck(self) -> None:
        """One rank stands in D state on a frozen file system, and with it all ranks stand still."""
        self.testbed.freeze(SICK)
        self.testbed.wait_for(
            lambda: self.testbed.rank_state(self.job, SICK) == "D", "the rank to stand in D state"
        )


def _pause(time: timedelta) -> None:
    threading.Event().wait(time.total_seconds())


@pytest.fixture(autouse=True)
def disks() -> None:
    """Some machines have no way to freeze a disk."""
    if why := SlurmTestbed.missing_disks():
        pytest.skip(why)


def _until(moment: datetime) -> None:
    _pause(max(moment - CLOCK.now().wall, timedelta()))


def _site(testbed: SlurmTestbed) -> tuple[SlurmCli, ClusterSite]:
    settings = SlurmSettings(
        cluster=ClusterName(testbed.options.cluster),
        slurm_conf=str(testbed.slurm_conf),
        own_user=testbed.bot_user,
    )
    client = SlurmCli(settings, Runner(), CLOCK, _pause)
    site = ClusterSite(
        cluster=client,
        nodes=UnreachedNodes(),
        history=AccountingHistory(settings, Runner(), CLOCK, _pause),
        jobs=client,
        changes=client,
        pause=_pause,
        spares=SpareRules(features=("h100",)),
        units=frozenset({"slurmd"}),
        close=lambda: None,
    )
    return client, site


@contextmanager
def staged(testbed: SlurmTestbed, folder: Path, *words: str) -> Iterator[Play]:
    """Eight nodes of one partition: four train, three are busy, one is idle, and twenty jobs wait."""
    whole = ("--exclusive", "--gres=gpu:h100:8", "--time=2-0")
    busy = [testbed.submit(SLEEP, *whole, f"--nodelist=gpu-0{number}") for number in (5, 6, 7, 8)]
    numbers = list(busy)
    bench: Bench | None = None
    try:
        testbed.give_scratch(SICK)
        for number in busy:
            testbed.wait_for_job(number, "RUNNING")
        how = ("--nodes=4", "--comment=nw:restartable", "--exclude=gpu-12", "--time=2-0")
        started = testbed.queue_coupled(*how, *words)
        numbers.append(started.id)
        testbed.wait_for_iteration(started, 6)
        waiting = testbed.fill_queue(WAITING, "--nodes=2")
        numbers.extend(waiting)
        testbed.cancel(busy[0])
        client, site = _site(testbed)
        bench = Bench(folder, site, CLOCK, _until)
        yield Play(testbed=testbed, client=client, bench=bench, job=started, waiting=waiting)
    finally:
        testbed.thaw(SICK)
        testbed.cancel_all(numbers)
        _as_it_was(testbed, bench)


def _as_it_was(testbed: SlurmTestbed, bench: Bench | None) -> None:
    """The sick node back in service, nothing reserved."""
    if bench is not None:
        for kind, name in bench.marks():
            if kind == "reservation":
                testbed.delete_reservation(name)
        bench.ledger.close()
    if "DRAIN" in testbed.node_states(SICK):
        testbed.admin_resume(SICK)
    testbed.wait_for_states(SICK, "IDLE")


def test_the_ground_is_held(slurm_testbed: SlurmTestbed, tmp_path: Path) -> None:
    with staged(slurm_testbed, tmp_path) as play:
        before = play.seen()
        assert before.nodes == JOB_NODES
        play.is_stuck()
        stood_at = play.job.checkpoint()
        assert stood_at > 0
        done = play.ask()
        assert done.state is RunState.SUCCEEDED, done.why
        after = play.seen()
        assert (after.state, after.restarts, set(after.nodes)) == ("RUNNING", 1, GROUND)
        assert play.others() == {"PENDING"}
        slurm_testbed.wait_for(
            lambda: any(at.restart == 1 and at.step > stood_at for at in play.job.entries()),
            "a step of the new run past the checkpoint",
        )
        kept = (after.priority, after.excluded_nodes, after.reservation)
        assert kept == (before.priority, before.excluded_nodes, before.reservation)
        assert play.client.fresh_reservations() == ()
        assert play.bench.marks() == [("drain", SICK)]
        assert play.job.two_writers() == ()


def test_a_job_that_asks_for_the_sick_node_by_name_is_left_as_it_is(
    slurm_testbed: SlurmTestbed, tmp_path: Path
) -> None:
    with staged(slurm_testbed, tmp_path, f"--nodelist={','.join(JOB_NODES)}") as play:
        play.is_stuck()
        done = play.ask()
        assert done.state is RunState.NEEDS_PERSON
        assert f"asks for {SICK} by name (-w)" in done.why
        assert f"its nodes would go to job {play.waiting[0]}" in done.why
        assert (play.seen().restarts, play.others()) == (0, {"PENDING"})
        assert play.client.fresh_reservations() == ()
        assert play.bench.marks() == []
        assert not play.client.fresh_node(SICK).draining


def test_a_job_of_a_qos_that_may_preempt_it_is_waited_for(tmp_path: Path) -> None:
    if why := SlurmTestbed.missing():
        pytest.skip(why)
    options = TestbedOptions(preemption=True)
    with (
        fresh_folder() as folder,
        SlurmTestbed(folder, options=options) as testbed,
        staged(testbed, tmp_path) as play,
    ):
        testbed.admin_drain("gpu-08", "new cable")
        (urgent,) = testbed.fill_queue(1, "--nodes=8", "--qos=high")
        done = play.ask()
        testbed.cancel(urgent)
        assert done.state is RunState.NEEDS_PERSON
        assert f"job {urgent} ({options.job_user}, QOS high) waits and may preempt" in done.why
        assert (play.seen().restarts, play.others()) == (0, {"PENDING"})
        assert play.client.fresh_reservations() == ()
        assert play.bench.marks() == []


def test_without_the_bot_the_queue_takes_the_nodes(
    slurm_testbed: SlurmTestbed, tmp_path: Path
) -> None:
    with staged(slurm_testbed, tmp_path) as play:
        play.is_stuck()
        slurm_testbed.admin_drain(SICK, "a person's")
        slurm_testbed.as_admin("scontrol", "requeue", str(play.job.id))
        slurm_testbed.wait_for(lambda: "RUNNING" in play.others(), "another job to start")
        assert play.seen().state != "RUNNING"
