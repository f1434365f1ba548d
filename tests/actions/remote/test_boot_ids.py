"""Which boot many hosts are in: asked at once, and never guessed for one that is silent."""

from pathlib import Path

import pytest

from actions.remote.agent_process import AgentProcess, Question
from actions.remote.unreached import UnreachedNodes
from actions.remote.visit import parse_boot
from actions.remote.wire import Answer
from actions.remote_values import BootId, CommandResult
from config.node_names import NodeName
from tests.actions.remote.conftest import Connect
from tests.actions.remote.sshd import Host, free_port

A, B, C = NodeName("gpu-01"), NodeName("gpu-02"), NodeName("gpu-03")
BOOT = "0a1b2c3d-1111-2222-3333-444455556666"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[NodeName, ...]]:
    """Nodes of each question that reaches the agent."""
    questions: list[tuple[NodeName, ...]] = []
    plain = AgentProcess.ask

    def ask(self: AgentProcess, question: Question) -> dict[NodeName, Answer]:
        questions.append(question.nodes)
        return plain(self, question)

    monkeypatch.setattr(AgentProcess, "ask", ask)
    return questions


def test_each_host_says_its_boot_and_a_silent_one_why_not(host: Host, connect: Connect) -> None:
    ports: dict[str, int] = {A: host.port, B: free_port(), C: host.port}
    found = connect(host.ssh_config("boots", ports)).boot_ids((A, B, C))
    here = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert found[A] == found[C] == BootId(value=here)
    assert found[B].value == ""
    assert "Connection refused" in found[B].lost


@pytest.mark.parametrize(
    "fan_out, parts", [(4, [(A, B), (C,)]), (6, [(A, B, C)]), (1, [(A,), (B,), (C,)])]
)
def test_half_of_the_fan_out_stays_free_for_others(
    host: Host,
    connect: Connect,
    asked: list[tuple[NodeName, ...]],
    fan_out: int,
    parts: list[tuple[NodeName, ...]],
) -> None:
    ports: dict[str, int] = {A: host.port, B: host.port, C: host.port}
    connect(host.ssh_config("parts", ports), fan_out=fan_out).boot_ids((A, B, A, C))
    assert asked == parts


@pytest.mark.parametrize(
    "result, why",
    [
        (CommandResult(exit_code=None, output=BOOT, lost="no answer within 20 s"), "no answer"),
        (CommandResult(exit_code=1, errors="cat: /proc: No such file"), "No such file"),
        (CommandResult(exit_code=0, output="welcome to gpu-01"), "exit code 0: welcome"),
        (CommandResult(exit_code=0, output=f"{BOOT}\n{BOOT}"), "exit code 0"),
        (CommandResult(exit_code=0), "exit code 0"),
    ],
)
def test_what_is_no_boot_id_is_none(result: CommandResult, why: str) -> None:
    found = parse_boot(result)
    assert found.value == ""
    assert why in found.lost


def test_a_boot_id_is_read_with_its_line_end() -> None:
    assert parse_boot(CommandResult(exit_code=0, output=f"{BOOT}\n")) == BootId(value=BOOT)


def test_nodes_without_a_way_to_them_have_no_boot() -> None:
    found = UnreachedNodes().boot_ids((A, B))
    assert [found[node].value for node in (A, B)] == ["", ""]
    assert all("no ssh_config" in boot.lost for boot in found.values())
