"""The verbs on reservations over a running Slurm: what it shows of one is what was asked for."""

from dataclasses import replace
from datetime import timedelta

import pytest

from actions.contract import Call, Done, Failed, FailureKind, Mark, Standing
from actions.reservation.delete import Delete
from actions.reservation.hold import Hold
from actions.reservation.keep import keep, restore
from actions.reservation.settings import Hands, ReservationSettings
from actions.shell import Runner
from actions.slurm.cli import SlurmCli
from actions.slurm.tools import SlurmSettings
from bot.testbed import SlurmTestbed
from config.ids import ClusterName
from config.node_names import NodeName
from config.system_clock import SystemClock
from tests.actions.fakes import RUN
from tests.actions.reservation.hands import OURS, hold_call

pytestmark = pytest.mark.slurm

BUSY, IDLE = NodeName("gpu-11"), NodeName("gpu-12")
SLEEP = "#!/bin/sh\nexec sleep 1000\n"


@pytest.fixture
def hands(slurm_testbed: SlurmTestbed) -> Hands:
    name = ClusterName(slurm_testbed.options.cluster)
    settings = SlurmSettings(
        cluster=name, slurm_conf=str(slurm_testbed.slurm_conf), own_user=slurm_testbed.bot_user
    )
    client = SlurmCli(settings, Runner(), SystemClock(), lambda time: None)
    return Hands(
        clusters={name: client},
        jobs={name: client},
        settings=ReservationSettings(
            hands_off=lambda *_: "", quiet_after_start=timedelta(seconds=0)
        ),
    )


def call(testbed: SlurmTestbed, *, marked: bool = False, **arguments: object) -> Call:
    """A call of now, with or without the ledger's mark."""
    cluster, now = ClusterName(testbed.options.cluster), SystemClock().now().wall
    given = {"nodes": [BUSY], "user": testbed.options.job_user, "length": "5m", **arguments}
    mark = Mark(
        kind="reservation",
        cluster=cluster,
        node=NodeName(OURS),
        run=RUN,
        boot_id="",
        text="written",
        at=now,
    )
    made = hold_call(arguments=given, marks=(mark,) if marked else ())
    return replace(made, cluster=cluster, now=now)


def test_a_busy_node_is_kept_changed_and_let_go(slurm_testbed: SlurmTestbed, hands: Hands) -> None:
    job = slurm_testbed.submit(SLEEP, "--nodelist=gpu-11", "--partition=spare", "--exclusive")
    slurm_testbed.wait_for_job(job, "RUNNING")
    try:
        done = Hold(hands).do(call(slurm_testbed))
        assert isinstance(done, Done)
        assert Hold(hands).look(call(slurm_testbed)).standing is Standing.BLOCKED
        seen = Hold(hands).look(call(slurm_testbed, marked=True))
        assert (seen.standing, seen.reason) == (Standing.OURS, done.mark_text)
        more = call(slurm_testbed, marked=True, nodes=[BUSY, IDLE], before=[BUSY])
        assert isinstance(keep(hands).do(more), Done)
        assert isinstance(restore(hands).do(more), Done)
        assert isinstance(Delete(hands).do(call(slurm_testbed, marked=True)), Done)
        assert slurm_testbed.job(job)["JobState"] == "RUNNING"
    finally:
        slurm_testbed.cancel(job)


@pytest.mark.parametrize("flags", ["ignore_jobs", "maint,ignore_jobs", "ignore_jobs,flex"])
def test_its_flags_are_seen_as_they_were_asked_for(
    flags: str, slurm_testbed: SlurmTestbed, hands: Hands
) -> None:
    marked = call(slurm_testbed, marked=True, flags=flags, nodes=[IDLE])
    assert isinstance(Hold(hands).do(marked), Done)
    assert Hold(hands).look(marked).standing is Standing.OURS
    assert isinstance(Delete(hands).do(marked), Done)


def test_a_persons_reservation_is_named_and_nothing_is_written(
    slurm_testbed: SlurmTestbed, hands: Hands
) -> None:
    slurm_testbed.reserve("drv580", IDLE, flags="maint,ignore_jobs")
    try:
        # Slurm itself lets a second one with `maint` stand beside it.
        slurm_testbed.reserve("beside", IDLE, flags="maint,ignore_jobs")
        slurm_testbed.delete_reservation("beside")
        failed = Hold(hands).do(call(slurm_testbed, nodes=[IDLE], flags="maint,ignore_jobs"))
        assert isinstance(failed, Failed)
        assert "drv580" in failed.error
        listed = hands.jobs[ClusterName(slurm_testbed.options.cluster)].fresh_reservations()
        assert [found.name for found in listed] == ["drv580"]
    finally:
        slurm_testbed.delete_reservation("drv580")


def test_a_reservation_that_a_job_points_to_cannot_be_deleted_yet(
    slurm_testbed: SlurmTestbed, hands: Hands
) -> None:
    assert isinstance(Hold(hands).do(call(slurm_testbed, nodes=[IDLE])), Done)
    job = slurm_testbed.submit(SLEEP, f"--reservation={OURS}", "--partition=spare")
    slurm_testbed.wait_for_job(job, "RUNNING")
    marked = call(slurm_testbed, marked=True)
    failed = Delete(hands).do(marked)
    slurm_testbed.cancel(job)
    assert isinstance(failed, Failed)
    assert (failed.kind, "in use" in failed.error) == (FailureKind.RETRYABLE, True)
    slurm_testbed.wait_for(
        lambda: isinstance(Delete(hands).do(marked), Done), "the reservation to be free"
    )
