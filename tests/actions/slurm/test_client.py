"""The Slurm client: sight and shared snapshots. Slurm's own words are those of 22.05."""

import threading
from datetime import timedelta

import pytest

from actions.cluster import Snapshot
from actions.contract import Refusal, UnknownNode, Unreadable
from actions.shell import Command, CommandFinished
from actions.slurm.cli import SlurmCli
from config.clock import Instant
from config.node_names import NodeName
from tests.actions.slurm.conftest import CONFIG, HandClock, ToldRunner, done, words
from tests.actions.slurm.rows import (
    GPU_01,
    GPU_04,
    NODES,
    RECORD,
    RowsRunner,
    client,
    runner,
    settings,
)
from tests.actions.slurm.test_text_that_poses import ROW
from tests.patience import DEADLINE

__all__ = ["client", "runner"]


def test_a_believed_snapshot_is_not_blind(client: SlurmCli) -> None:
    assert client.snapshot().blind == ()


def test_a_busy_node_without_a_visible_job_makes_the_snapshot_blind(
    client: SlurmCli, runner: RowsRunner
) -> None:
    runner.jobs = runner.jobs[1:]
    blind = client.snapshot().blind
    assert len(blind) == 2
    assert blind[0].startswith("gpu-01 is MIXED+DRAIN")


def test_private_jobs_make_the_snapshot_blind_unless_anothers_job_is_seen(
    runner: RowsRunner, clock: HandClock
) -> None:
    runner.tell("show config", CONFIG.replace("= none\nProctrack", "= jobs,nodes\nProctrack"))
    assert SlurmCli(settings("bot"), runner, clock, clock.pass_by).snapshot().blind == ()
    alone = SlurmCli(settings("ann"), runner, clock, clock.pass_by)
    assert any("PrivateData=jobs" in why for why in alone.snapshot().blind)
    with pytest.raises(Refusal, match="PrivateData=jobs"):
        alone.fresh_jobs(GPU_04)


def test_fresh_jobs_are_refused_when_the_node_is_busy_and_no_job_is_shown(
    client: SlurmCli, runner: RowsRunner
) -> None:
    runner.jobs = []
    with pytest.raises(Refusal, match=r"gpu-01 is MIXED\+DRAIN, but no job on it is visible"):
        client.fresh_jobs(GPU_01)
    assert client.fresh_jobs(GPU_04) == ()


def test_a_job_that_ended_just_now_still_explains_its_node(
    client: SlurmCli, runner: RowsRunner, clock: HandClock
) -> None:
    ended = {"State": "COMPLETED", "EndTime": clock.wall.strftime("%Y-%m-%dT%H:%M:%S")}
    runner.jobs[0].update(ended)
    assert client.fresh_jobs(GPU_01) == ()
    runner.jobs[0]["EndTime"] = "2026-11-30T16:00:00"
    with pytest.raises(Refusal):
        client.fresh_jobs(GPU_01)


def test_a_suspended_job_is_seen_on_a_node_that_looks_idle(
    client: SlurmCli, runner: RowsRunner
) -> None:
    runner.jobs.append({**ROW, "JobID": "9", "State": "SUSPENDED", "NodeList": "gpu-04"})
    assert [job.slurm_id for job in client.fresh_jobs(GPU_04)] == [9]
    assert all("--states=all" in line and "--all" in line for line in squeue(runner))


def squeue(runner: ToldRunner) -> list[str]:
    return [line for line in words(runner.asked) if line.startswith("squeue")]


def test_readers_share_one_snapshot_for_15_seconds(
    client: SlurmCli, runner: RowsRunner, clock: HandClock
) -> None:
    first = client.snapshot()
    clock.pass_by(timedelta(seconds=14))
    assert client.snapshot() is first
    clock.pass_by(timedelta(seconds=2))
    assert client.snapshot() is not first
    assert runner.fetches == 2


class WatchedClock(HandClock):
    """Tells when so many different threads have read it, which readers do as they enter."""

    def __init__(self, threads: int) -> None:
        super().__init__()
        self._left = threads
        self._seen: set[int] = set()
        self.all_in = threading.Event()

    def now(self) -> Instant:
        self._seen.add(threading.get_ident())
        if len(self._seen) == self._left:
            self.all_in.set()
        return super().now()


def test_readers_that_come_together_cause_one_fetch(runner: RowsRunner) -> None:
    clock = WatchedClock(threads=9)  # this thread makes the client
    client = SlurmCli(settings(), runner, clock, clock.pass_by)
    runner.on_fetch = clock.all_in
    seen: list[Snapshot] = []
    readers = [threading.Thread(target=lambda: seen.append(client.snapshot())) for _ in range(8)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(DEADLINE)
    assert len(seen) == 8
    assert all(one is seen[0] for one in seen)
    assert runner.fetches == 1


def test_a_failed_snapshot_is_told_and_the_next_one_is_asked_anew(
    client: SlurmCli, runner: RowsRunner
) -> None:
    runner.tell("show nodes", done(stderr="slurm_load_node error: Unable to contact", code=1))
    with pytest.raises(Unreadable, match="Unable to contact"):
        client.snapshot()
    runner.tell("show nodes", NODES)
    runner.tell("--json", done(stderr="unrecognized option '--json'", code=1))
    assert len(client.snapshot().nodes) == 12


def test_a_snapshot_child_that_breaks_off_gives_no_snapshot(
    runner: RowsRunner, clock: HandClock
) -> None:
    class Cut(ToldRunner):
        def run(self, command: Command) -> CommandFinished:
            whole = runner.run(command).stdout.splitlines()
            return done("\n".join(whole[:-1]))

    with pytest.raises(Unreadable, match="breaks off"):
        SlurmCli(settings(), Cut(), clock, clock.pass_by).snapshot()


def test_jobs_of_another_cluster_are_no_answer(client: SlurmCli, runner: RowsRunner) -> None:
    runner.jobs[0]["Cluster"] = "other"
    with pytest.raises(Unreadable, match="of cluster other"):
        client.fresh_jobs(GPU_01)


def test_a_node_that_the_controller_does_not_know_is_unknown(
    client: SlurmCli, runner: RowsRunner
) -> None:
    runner.tell("show node gpu-77", done("Node gpu-77 not found\n", code=1))
    runner.tell("--json", done(stderr="unrecognized option '--json'", code=1))
    with pytest.raises(UnknownNode, match="gpu-77"):
        client.fresh_node(NodeName("gpu-77"))


@pytest.mark.parametrize(
    "silent",
    [
        CommandFinished(exit_code=None, timed_out=True, lost="scontrol did not end within 20 s"),
        done(stderr="Unable to contact slurm controller (connect failure)", code=1),
        CommandFinished(exit_code=0, stdout=RECORD["gpu-04"], truncated=True),
        done("gibberish"),
    ],
)
def test_a_controller_that_gives_no_whole_answer_is_unreadable(
    client: SlurmCli, runner: RowsRunner, silent: CommandFinished
) -> None:
    runner.tell("show node gpu-04", silent)
    with pytest.raises((Unreadable, UnknownNode)):
        client.fresh_node(GPU_04)


def test_tools_are_asked_for_json_once_and_then_in_text(
    client: SlurmCli, runner: RowsRunner
) -> None:
    client.fresh_node(GPU_04)
    client.fresh_node(GPU_04)
    assert sum("--json" in line for line in words(runner.asked)) == 1


def test_a_silent_controller_does_not_look_like_missing_json(
    client: SlurmCli, runner: RowsRunner
) -> None:
    runner.tell("--json", done(stderr="Unable to contact slurm controller", code=1))
    with pytest.raises(Unreadable):
        client.fresh_node(GPU_04)
    assert all("--json" in line for line in words(runner.asked))


def test_a_job_list_too_long_for_json_is_asked_for_in_rows_from_then_on(
    client: SlurmCli, runner: RowsRunner, clock: HandClock
) -> None:
    runner.tell("squeue --all --local --states=all --json", done("{}"))
    runner.tell(
        "squeue --all --local --states=all --json",
        CommandFinished(exit_code=0, stdout='{"jobs": [', truncated=True),
    )
    assert len(client.snapshot().jobs) == 3
    clock.pass_by(timedelta(seconds=20))
    assert len(client.snapshot().jobs) == 3
    assert sum("squeue" in line and "--json" in line for line in words(runner.asked)) == 1


@pytest.mark.parametrize(
    ("client_version", "own_user", "faults"),
    [
        ("slurm-wlm 22.05.8", "nodewarden", ()),
        ("slurm 21.08.1", "nodewarden", ()),
        ("slurm 24.11.5", "nodewarden", ("newer than the controller's 22.05.8",)),
        ("slurm 22.05.9", "root", ("the bot runs as root",)),
    ],
)
def test_a_newer_client_and_a_borrowed_user_are_faults(
    runner: RowsRunner,
    clock: HandClock,
    client_version: str,
    own_user: str,
    faults: tuple[str, ...],
) -> None:
    runner.tell("scontrol --version", client_version + "\n")
    found = SlurmCli(settings(own_user), runner, clock, clock.pass_by).faults()
    assert len(found) == len(faults)
    assert all(part in text for part, text in zip(faults, found, strict=True))
