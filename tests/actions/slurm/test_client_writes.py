"""The Slurm client: one update of one node, and what its answers mean. The words are those of 22.05."""

import pytest

from actions.contract import Refusal, Rejected, UnknownNode, Unreadable, WriteUnknown
from actions.shell import CommandFinished
from actions.slurm.cli import SlurmCli
from config.node_names import NodeName
from tests.actions.slurm.conftest import CONFIG, HandClock, done, words
from tests.actions.slurm.rows import (
    GPU_01,
    GPU_04,
    REASON,
    RowsRunner,
    client,
    runner,
    settings,
)

__all__ = ["client", "runner"]


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
