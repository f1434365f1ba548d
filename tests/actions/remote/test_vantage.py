"""A second vantage point over a real ssh: what another node finds at the known ports of a host."""

import json
import socket
from collections.abc import Sequence

import pytest

from actions.contract import Refusal
from actions.remote import ports
from actions.remote.vantage import RemoteVantage
from actions.remote_values import CommandResult
from actions.vantage import Answer, References
from config.node_names import NodeName
from tests.actions.remote.conftest import Connect
from tests.actions.remote.sshd import Host, free_port

SILENT, NEIGHBOUR = NodeName("gpu-01"), NodeName("gpu-02")


def answer(*found: tuple[int, str]) -> CommandResult:
    tried = [{"port": port, "answer": word, "evidence": f"port {port}"} for port, word in found]
    return CommandResult(exit_code=0, output=json.dumps({"host": "x", "tried": tried}))


def vantage(
    known: tuple[int, ...], nodes: object = None, hosts: tuple[str, ...] = ()
) -> RemoteVantage:
    def unasked(node: NodeName, address: str, asked: Sequence[int]) -> CommandResult:
        raise Refusal("no way to ask")

    tried = unasked if nodes is None else nodes.ports_tried  # type: ignore[attr-defined]
    return RemoteVantage(known_ports=known, reference_hosts=hosts, tried_by=tried)


def test_another_node_finds_an_open_port_and_a_refusing_one(host: Host, connect: Connect) -> None:
    nodes = connect(host.ssh_config("vantage", {NEIGHBOUR: host.port}))
    for port in (host.port, free_port()):
        found = vantage((port,), nodes).from_node(NEIGHBOUR, SILENT, "127.0.0.1")
        assert found.answer is Answer.ANSWERED
        assert f"port {port}" in found.evidence


def test_a_neighbour_that_cannot_be_reached_has_asked_nobody(host: Host, connect: Connect) -> None:
    nodes = connect(host.ssh_config("gone", {NEIGHBOUR: free_port()}))
    found = vantage((22,), nodes).from_node(NEIGHBOUR, SILENT, "127.0.0.1")
    assert found.answer is Answer.NOT_ASKED


def test_an_address_is_an_argument_and_nothing_else(host: Host, connect: Connect) -> None:
    nodes = connect(host.ssh_config("odd", {NEIGHBOUR: host.port}))
    canary = host.folder / "canary"
    vantage((22,), nodes).from_node(NEIGHBOUR, SILENT, f"$(touch {canary}) ; touch {canary}")
    assert not canary.exists()


def test_a_host_is_no_witness_of_itself() -> None:
    found = vantage((22,)).from_node(SILENT, SILENT, "127.0.0.1")
    assert (found.answer, found.evidence) == (Answer.NOT_ASKED, "it is the host itself")


def test_a_neighbour_that_may_not_be_asked_has_asked_nobody() -> None:
    found = vantage((22,)).from_node(NEIGHBOUR, SILENT, "127.0.0.1")
    assert (found.answer, found.evidence) == (Answer.NOT_ASKED, "no way to ask")


def test_the_bot_itself_sees_open_and_refusing_ports() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        known = (free_port(), listener.getsockname()[1])
        found = vantage(known).from_bot(SILENT, "127.0.0.1")
    assert (found.answer, found.place) == (Answer.ANSWERED, "the bot")


def test_every_reference_host_is_counted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        hosts = (f"127.0.0.1:{listener.getsockname()[1]}", f"127.0.0.1:{free_port()}")
        assert vantage((22,), hosts=hosts).references() == References(reached=1, named=2)


@pytest.mark.parametrize(
    "result, expected",
    [
        (answer((22, "silent"), (6818, "silent")), Answer.SILENT),
        (answer((22, "silent"), (6818, "no_route")), Answer.SILENT),
        (answer((22, "silent"), (6818, "refused")), Answer.ANSWERED),
        (answer((22, "silent")), Answer.NOT_ASKED),
        (answer((22, "silent"), (6818, "dunno")), Answer.NOT_ASKED),
        (CommandResult(exit_code=0, output="{}"), Answer.NOT_ASKED),
        (CommandResult(exit_code=0, output="[1, 2]"), Answer.NOT_ASKED),
        (CommandResult(exit_code=0, output="motd\n"), Answer.NOT_ASKED),
        (CommandResult(exit_code=1, output=answer((22, "silent")).output), Answer.NOT_ASKED),
        (CommandResult(exit_code=127, errors="python3: not found"), Answer.NOT_ASKED),
        (CommandResult(exit_code=None, lost="time-out"), Answer.NOT_ASKED),
    ],
)
def test_only_a_whole_answer_makes_a_host_silent(result: CommandResult, expected: Answer) -> None:
    assert ports.told("gpu-02", result, (22, 6818)).answer is expected


def test_nothing_tried_is_not_silence() -> None:
    assert ports.judged("the bot", ()).answer is Answer.NOT_ASKED
