"""After a take-over the quiet time counts from it, though no time of Slurm's shows it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from actions.cluster import Controller
from actions.contract import Unreadable
from actions.slurm.cli import SlurmCli
from actions.slurm.control import Control
from config.ids import ClusterName
from tests.actions.slurm.conftest import AT, CONFIG, HandClock
from tests.actions.slurm.rows import GPU_04, REASON, RowsRunner, client, runner

__all__ = ["client", "runner"]

PRIMARY = Controller(
    cluster=ClusterName("mini"),
    version="22.05.8",
    booted_at=AT - timedelta(days=9),
    slurmd_timeout=timedelta(seconds=300),
    return_to_service=1,
    in_control="ctl",
)
BACKUP = replace(PRIMARY, in_control="two", backup=True, booted_at=AT - timedelta(days=90))
TAKEN = CONFIG.replace("(primary) at ctl is UP", "(primary) at ctl is DOWN").rstrip("\n") + (
    "\nSlurmctld(backup) at two is UP\n"
)
MINUTE = timedelta(minutes=1)


def test_a_primary_that_was_there_from_the_first_look_keeps_its_start() -> None:
    control = Control()
    assert control.seen(PRIMARY, AT) == PRIMARY
    assert control.seen(PRIMARY, AT + MINUTE) == PRIMARY


def test_a_take_over_and_the_way_back_are_starts() -> None:
    control = Control()
    control.seen(PRIMARY, AT)
    assert control.seen(BACKUP, AT + MINUTE).booted_at == AT + MINUTE
    assert control.seen(BACKUP, AT + 5 * MINUTE).booted_at == AT + MINUTE
    assert control.seen(PRIMARY, AT + 9 * MINUTE).booted_at == AT + 9 * MINUTE


def test_a_later_start_of_the_same_controller_is_its_start() -> None:
    control = Control()
    control.seen(PRIMARY, AT)
    control.seen(BACKUP, AT + MINUTE)
    again = replace(BACKUP, booted_at=AT + 3 * MINUTE)
    assert control.seen(again, AT + 4 * MINUTE) == again


def test_a_backup_at_the_first_look_may_have_taken_over_a_moment_ago() -> None:
    assert Control().seen(BACKUP, AT).booted_at == AT


def test_a_release_that_does_not_tell_who_answers_keeps_its_start() -> None:
    control = Control()
    silent = replace(PRIMARY, in_control="")
    control.seen(silent, AT)
    assert control.seen(silent, AT + MINUTE) == silent


def test_snapshots_carry_the_take_over_as_the_start(
    client: SlurmCli, runner: RowsRunner, clock: HandClock
) -> None:
    before = client.snapshot().controller
    assert (before.in_control, before.backup) == ("ctl", False)
    runner.tell("show config", TAKEN)
    clock.pass_by(MINUTE)
    after = client.snapshot().controller
    assert (after.in_control, after.booted_at) == ("two", clock.wall)


@pytest.mark.parametrize(
    "other", [TAKEN, CONFIG.replace("= 2026-11-30T16:53:31", "= 2026-11-30T17:00:00")]
)
def test_nothing_is_written_to_a_controller_that_started_after_the_last_look(
    other: str, client: SlurmCli, runner: RowsRunner
) -> None:
    assert other != CONFIG
    client.snapshot()
    runner.tell("show config", other)
    with pytest.raises(Unreadable, match="has just started or taken over"):
        client.drain(GPU_04, REASON)
    assert runner.writes == []
    client.snapshot()
    client.drain(GPU_04, REASON)
    assert len(runner.writes) == 1


@pytest.mark.parametrize(
    "other", [TAKEN, CONFIG.replace("= 2026-11-30T16:53:31", "= 2026-11-30T17:00:00")]
)
def test_what_a_later_controller_shows_of_our_write_is_not_believed(
    other: str, client: SlurmCli, runner: RowsRunner
) -> None:
    client.drain(GPU_04, REASON)
    runner.tell("show config", other)
    with pytest.raises(Unreadable, match="may have forgotten it"):
        client.fresh_node(GPU_04)
    assert client.fresh_node(GPU_04).name == GPU_04


def test_the_controller_that_took_our_write_is_believed(
    client: SlurmCli, runner: RowsRunner
) -> None:
    client.drain(GPU_04, REASON)
    assert client.fresh_node(GPU_04).name == GPU_04
    asked = len(runner.asked)
    client.fresh_node(GPU_04)
    assert len(runner.asked) == asked + 1
