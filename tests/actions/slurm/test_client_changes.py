"""Further writes of the Slurm client: one scontrol each, and no word in it that means more than one thing.

The words of Slurm are those of 22.05, measured.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from actions.cluster import JobChange, ReservationWish
from actions.contract import Refusal, Rejected, UnknownJob, UnknownNode, Unreadable, WriteUnknown
from actions.slurm.cli import SlurmCli
from config.ids import JobId
from config.node_names import NodeName
from tests.actions.slurm.conftest import CONFIG, HandClock, done
from tests.actions.slurm.rows import GPU_01, GPU_04, REASON, RowsRunner, client, runner, settings

__all__ = ["client", "runner"]

WISH = ReservationWish(
    name="nw-run-7-job-0a1b2c3d",
    nodes=(GPU_01, GPU_04),
    user="ann",
    length=timedelta(minutes=30),
)
Write = Callable[[SlurmCli], None]
WRITES: dict[str, tuple[Write, tuple[str, ...]]] = {
    "down": (
        lambda client: client.down(GPU_04, REASON),
        ("update", "NodeName=gpu-04", "State=DOWN", f"Reason={REASON}"),
    ),
    "reboot": (lambda client: client.reboot(GPU_04), ("reboot", "gpu-04")),
    "partition": (
        lambda client: client.set_partition_nodes("train", (GPU_04, GPU_01)),
        ("update", "PartitionName=train", "Nodes=gpu-04,gpu-01"),
    ),
    "create": (
        lambda client: client.create_reservation(WISH),
        (
            *("create", "ReservationName=nw-run-7-job-0a1b2c3d", "StartTime=now", "Duration=30"),
            *("Users=ann", "Nodes=gpu-01,gpu-04", "Flags=IGNORE_JOBS"),
        ),
    ),
    "nodes": (
        lambda client: client.set_reservation_nodes("nw-r", (GPU_04,)),
        ("update", "ReservationName=nw-r", "Nodes=gpu-04"),
    ),
    "delete": (
        lambda client: client.delete_reservation("nw-r"),
        ("delete", "ReservationName=nw-r"),
    ),
    "requeue": (
        lambda client: client.requeue((JobId("12_3"), JobId("12_5"))),
        ("requeue", "Incomplete", "12_3,12_5"),
    ),
    "change": (
        lambda client: client.change_job(
            JobId("12+1"), JobChange(reservation="", excluded_nodes="gpu-[01,04]", priority=7)
        ),
        ("update", "JobId=12+1", "ReservationName=", "ExcNodeList=gpu-01,gpu-04", "Priority=7"),
    ),
}
every_write = pytest.mark.parametrize("name", WRITES)


def sent(runner: RowsRunner) -> list[tuple[str, ...]]:
    """What was sent that is no question."""
    verbs = {"update", "create", "delete", "requeue", "reboot"}
    return [command.argv for command in runner.asked if verbs & set(command.argv)]


def answer(runner: RowsRunner, stderr: str) -> None:
    for verb in ("update", "create", "delete", "requeue", "reboot"):
        runner.tell(f"--local {verb}", done(stderr=stderr, code=1) if stderr else "")


@pytest.fixture(autouse=True)
def every_write_succeeds(runner: RowsRunner) -> None:
    answer(runner, "")


@every_write
def test_each_write_is_one_scontrol_in_an_argument_list(
    name: str, client: SlurmCli, runner: RowsRunner
) -> None:
    write, words = WRITES[name]
    write(client)
    assert sent(runner) == [("scontrol", "--local", *words)]
    assert all("+=" not in word and "-=" not in word for word in words)
    assert not {"ASAP", "nextstate=RESUME"} & set(words)


@every_write
def test_a_lost_answer_may_have_happened_and_a_refusal_did_not(
    name: str, client: SlurmCli, runner: RowsRunner
) -> None:
    write, _ = WRITES[name]
    answer(runner, "slurm_update error: Socket timed out on send/recv operation")
    with pytest.raises(WriteUnknown, match="may have happened"):
        write(client)
    answer(runner, "Access/permission denied for job 12_3\nAccess/permission denied for job 12_5")
    with pytest.raises(Rejected, match="permission denied"):
        write(client)


@every_write
def test_no_write_goes_to_another_cluster_or_while_a_fault_stands(
    name: str, client: SlurmCli, runner: RowsRunner, clock: HandClock
) -> None:
    write, _ = WRITES[name]
    with pytest.raises(Refusal):
        write(SlurmCli(settings("root"), runner, clock, clock.pass_by))
    runner.tell("show config", CONFIG.replace("= mini\n", "= other\n"))
    with pytest.raises(Unreadable, match="of cluster other"):
        write(client)
    assert sent(runner) == []


def test_a_requeue_that_one_of_several_jobs_was_refused_may_have_happened(
    client: SlurmCli, runner: RowsRunner
) -> None:
    # Slurm asks once for each id and goes on after an error (measured).
    answer(runner, "Invalid job id specified for job 99")
    with pytest.raises(WriteUnknown, match="some of job 2, 99 may be requeued"):
        client.requeue((JobId("2"), JobId("99")))
    with pytest.raises(Rejected):
        client.requeue((JobId("99"),))
    answer(runner, "Requested operation is presently disabled for job 12")
    with pytest.raises(WriteUnknown):
        client.requeue((JobId("1"), JobId("12")))


def test_a_partition_never_gets_a_node_that_the_controller_does_not_know(
    client: SlurmCli, runner: RowsRunner
) -> None:
    with pytest.raises(UnknownNode, match="gpu-77"):
        client.set_partition_nodes("train", (GPU_01, NodeName("gpu-77")))
    assert sent(runner) == []


@pytest.mark.parametrize("job", ["12_[3-5]", "12,13", "ALL", "", "0", "12_", "-1", "12\n13", "١٢"])
def test_an_expression_of_several_jobs_names_no_job(
    job: str, client: SlurmCli, runner: RowsRunner
) -> None:
    for act in (
        client.fresh_job,
        lambda name: client.requeue((JobId("1"), name)),
        lambda name: client.change_job(name, JobChange(priority=1)),
    ):
        with pytest.raises(UnknownJob):
            act(JobId(job))
    assert runner.asked == []


@pytest.mark.parametrize("name", ["a b", "a,b", "a=b", "", "ALL", "-x", "+x", "a\nb", "x" * 101])
def test_a_name_that_is_more_than_one_word_reaches_no_tool(
    name: str, client: SlurmCli, runner: RowsRunner
) -> None:
    wish = replace(WISH, name="r")
    writes: list[Write] = [
        lambda client: client.delete_reservation(name),
        lambda client: client.set_reservation_nodes(name, (GPU_01,)),
        lambda client: client.create_reservation(replace(wish, name=name)),
        lambda client: client.set_partition_nodes(name, (GPU_01,)),
    ]
    if name not in {"", "ALL", "x" * 101}:
        writes.append(lambda client: client.create_reservation(replace(wish, user=name)))
    if name:
        writes.append(lambda client: client.change_job(JobId("1"), JobChange(reservation=name)))
    for write in writes:
        with pytest.raises(Rejected):
            write(client)
    assert runner.asked == []


@pytest.mark.parametrize(
    "nodes", [(), ("ALL",), ("gpu-[01-02]",), ("gpu-01,gpu-02",), ("+gpu-01",)]
)
def test_a_list_of_nodes_is_never_empty_and_holds_plain_names(
    nodes: tuple[str, ...], client: SlurmCli, runner: RowsRunner
) -> None:
    names = tuple(NodeName(node) for node in nodes)
    writes: list[Write] = [
        lambda client: client.set_partition_nodes("train", names),
        lambda client: client.set_reservation_nodes("r", names),
        lambda client: client.create_reservation(
            ReservationWish(name="r", user="ann", nodes=names, length=timedelta(minutes=1))
        ),
    ]
    for write in writes:
        with pytest.raises((Rejected, UnknownNode, ValueError)):
            write(client)
    assert runner.asked == []


@pytest.mark.parametrize(
    "wish",
    [
        ReservationWish(name="r", nodes=(GPU_01,), user="ann", length=timedelta()),
        ReservationWish(name="r", nodes=(GPU_01,), user="ann", length=timedelta(seconds=90)),
        ReservationWish(name="r", nodes=(GPU_01,), user="ann", length=timedelta(days=400)),
        ReservationWish(
            name="r",
            nodes=(GPU_01,),
            user="ann",
            length=timedelta(minutes=1),
            flags=frozenset({"OVERLAP"}),
        ),
    ],
    ids=["no time", "half a minute", "too long", "another flag"],
)
def test_a_reservation_of_another_kind_is_not_sent(
    wish: ReservationWish, client: SlurmCli, runner: RowsRunner
) -> None:
    with pytest.raises(Rejected):
        client.create_reservation(wish)
    assert runner.asked == []


@pytest.mark.parametrize(
    "change",
    [
        JobChange(),
        JobChange(priority=0),
        JobChange(priority=0xFFFFFFFE),
        JobChange(excluded_nodes="+=gpu-01"),
        JobChange(excluded_nodes="ALL"),
    ],
    ids=str,
)
def test_a_change_that_would_hold_or_reset_a_job_is_not_sent(
    change: JobChange, client: SlurmCli, runner: RowsRunner
) -> None:
    with pytest.raises((Rejected, UnknownNode)):
        client.change_job(JobId("12"), change)
    assert runner.asked == []


def test_the_empty_text_clears_and_nothing_leaves_as_it_is(
    client: SlurmCli, runner: RowsRunner
) -> None:
    client.change_job(JobId("12"), JobChange(excluded_nodes=""))
    assert sent(runner) == [("scontrol", "--local", "update", "JobId=12", "ExcNodeList=")]
