"""The Slurm client: sight, sharing, writes. Slurm's own words are those of 22.05."""

import io
import threading
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from actions.cluster import Snapshot
from actions.contract import Refusal, Rejected, UnknownNode, Unreadable, WriteUnknown
from actions.shell import Command, CommandFinished
from actions.slurm.cli import SlurmCli
from actions.slurm.jobs import ROW_FIELDS
from actions.slurm.snapshot_child import print_snapshot
from actions.slurm.tools import SlurmSettings
from config.clock import Instant
from config.ids import ClusterName
from config.node_names import NodeName
from tests.actions.slurm.conftest import CONFIG, RECORDINGS, HandClock, ToldRunner, done, words
from tests.actions.slurm.test_text_that_poses import ROW
from tests.patience import DEADLINE

NODES = (RECORDINGS / "22.05" / "scontrol-nodes.txt").read_text()
RECORD = {record.split()[0][9:]: record for record in NODES.split("\n\n") if record}
GPU_01, GPU_04 = NodeName("gpu-01"), NodeName("gpu-04")
REASON = "nw A1 [run-7/0a1b2c3d]"


@dataclass
class RowsRunner(ToldRunner):
    """Also prints jobs in the form it is asked for, and takes snapshots in this process."""

    jobs: list[dict[str, str]] = field(default_factory=list)
    fetches: int = 0
    on_fetch: threading.Event | None = None

    def run(self, command: Command) -> CommandFinished:
        if "actions.slurm.snapshot_child" in command.argv:
            self.fetches += 1
            if self.on_fetch is not None:
                self.on_fetch.wait(DEADLINE)
            out = io.StringIO()
            print_snapshot(command.stdin.decode(), self, out)
            return done(out.getvalue())
        form = next((word for word in command.argv if word.startswith("--Format=")), None)
        if form is None:
            return super().run(command)
        self.asked.append(command)
        mark = form.split(",")[0].partition(":")[2]
        return done(
            "".join("".join(job[name] + mark for name in ROW_FIELDS) + "\n" for job in self.jobs)
        )


@pytest.fixture
def runner() -> RowsRunner:
    runner = RowsRunner()
    runner.tell("--format=", "")
    runner.tell("show nodes", NODES)
    runner.tell("show partitions", "")
    runner.tell("show reservations", "No reservations in the system\n")
    for name, record in RECORD.items():
        runner.tell(f"show node {name}", record)
    runner.tell("show config", CONFIG)
    runner.tell("scontrol --version", "slurm-wlm 22.05.8\n")
    runner.tell("update", "")
    runner.tell("--json", done(stderr="scontrol: unrecognized option '--json'", code=1))
    runner.jobs = [
        {**ROW, "JobID": "1", "NodeList": "gpu-[01-02]"},
        {**ROW, "JobID": "2", "NodeList": "gpu-03"},
        {**ROW, "JobID": "3", "NodeList": "gpu-09"},
    ]
    return runner


def settings(own_user: str = "nodewarden") -> SlurmSettings:
    return SlurmSettings(cluster=ClusterName("mini"), own_user=own_user)


@pytest.fixture
def client(runner: RowsRunner, clock: HandClock) -> SlurmCli:
    return SlurmCli(settings(), runner, clock, clock.pass_by)


# ---------------------------------------------------------------------------------------- sight


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


# ------------------------------------------------------------------------------------ snapshots


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
        reader.join(30)
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


# --------------------------------------------------------------------------------------- writes


def test_a_drain_is_one_update_of_one_node_in_an_argument_list(
    client: SlurmCli, runner: RowsRunner
) -> None:
    client.drain(GPU_04, REASON)
    (write,) = runner.writes
    assert write.argv == (
        "scontrol",
        "--local",
        "update",
        "NodeName=gpu-04",
        "State=DRAIN",
        f"Reason={REASON}",
    )
    assert write.environment.keys() == {"PATH", "SLURM_CONF", "TZ", "LC_ALL"}


def test_a_resume_is_one_update_of_one_node(client: SlurmCli, runner: RowsRunner) -> None:
    client.resume(GPU_04)
    (write,) = runner.writes
    assert write.argv[2:] == ("update", "NodeName=gpu-04", "State=RESUME")


def test_no_write_goes_to_another_cluster(client: SlurmCli, runner: RowsRunner) -> None:
    runner.tell("show config", CONFIG.replace("= mini\n", "= other\n"))
    with pytest.raises(Unreadable, match="of cluster other, not mini"):
        client.drain(GPU_04, REASON)
    assert runner.writes == []


def test_jobs_of_another_cluster_are_no_answer(client: SlurmCli, runner: RowsRunner) -> None:
    runner.jobs[0]["Cluster"] = "other"
    with pytest.raises(Unreadable, match="of cluster other"):
        client.fresh_jobs(GPU_01)


@pytest.mark.parametrize(
    "lost",
    [
        CommandFinished(exit_code=None, timed_out=True, lost="scontrol did not end within 30 s"),
        CommandFinished(exit_code=None, lost="scontrol was killed by SIGKILL"),
        done(stderr="slurm_update error: Socket timed out on send/recv operation", code=1),
        done(stderr="slurm_update error: Zero Bytes were transmitted or received", code=1),
        done(stderr="slurm_update error: Unexpected message received", code=1),
    ],
    ids=lambda finished: finished.lost or finished.stderr,
)
def test_a_write_whose_answer_is_lost_may_have_happened(
    client: SlurmCli, runner: RowsRunner, lost: CommandFinished
) -> None:
    runner.tell("update", lost)
    with pytest.raises(WriteUnknown, match="gpu-04 may have happened"):
        client.drain(GPU_04, REASON)
    with pytest.raises(WriteUnknown):
        client.resume(GPU_04)


@pytest.mark.parametrize(
    "words_of_slurm",
    [
        "slurm_update error: Invalid node state specified",
        "slurm_update error: Invalid node name specified",
        "slurm_update error: Access/permission denied",
    ],
)
def test_a_refused_write_is_rejected_in_the_controllers_words(
    client: SlurmCli, runner: RowsRunner, words_of_slurm: str
) -> None:
    runner.tell("update", done(stderr=words_of_slurm + "\n", code=1))
    with pytest.raises(Rejected) as refused:
        client.resume(GPU_04)
    assert str(refused.value) == words_of_slurm


def test_a_write_that_could_not_start_is_rejected(client: SlurmCli, runner: RowsRunner) -> None:
    runner.tell("update", CommandFinished(exit_code=None, lost="no program", started=False))
    with pytest.raises(Rejected, match="nothing was sent"):
        client.drain(GPU_04, REASON)


@pytest.mark.parametrize("reason", ["", "a\nState=IDLE", "דנה", "x" * 201, "a\0b"])
def test_a_reason_that_is_not_plain_text_is_refused_before_anything_is_asked(
    client: SlurmCli, runner: RowsRunner, reason: str
) -> None:
    with pytest.raises(Rejected, match="printable ASCII"):
        client.drain(GPU_04, reason)
    assert runner.asked == []


@pytest.mark.parametrize("name", ["ALL", "all", "localhost"])
def test_a_word_that_means_other_nodes_is_no_node(
    client: SlurmCli, runner: RowsRunner, name: str
) -> None:
    with pytest.raises(UnknownNode):
        client.drain(NodeName(name), REASON)
    assert runner.asked == []


@pytest.mark.parametrize("name", ["gpu-[01-02]", "gpu-01,gpu-02", "*", "-oProxyCommand=x", "a\nb"])
def test_more_than_one_name_never_reaches_scontrol(
    client: SlurmCli, runner: RowsRunner, name: str
) -> None:
    for act in (client.resume, client.fresh_node, client.fresh_jobs):
        with pytest.raises(ValueError, match="not a node name"):
            act(NodeName(name))
    assert not any(name in line for line in words(runner.asked))


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


@pytest.mark.parametrize(
    ("client_version", "own_user"), [("slurm 24.11.5", "nodewarden"), ("slurm 22.05.8", "root")]
)
def test_nothing_is_written_while_a_fault_stands(
    runner: RowsRunner, clock: HandClock, client_version: str, own_user: str
) -> None:
    runner.tell("scontrol --version", client_version + "\n")
    client = SlurmCli(settings(own_user), runner, clock, clock.pass_by)
    with pytest.raises(Refusal):
        client.drain(GPU_01, REASON)
    with pytest.raises(Refusal):
        client.resume(GPU_01)
    assert runner.writes == []
