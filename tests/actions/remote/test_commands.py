"""Commands on nodes: fan-out, caps, time limits, and the death of the agent."""

import os
import select
import signal
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from actions.contract import Refusal
from actions.remote.agent_process import Question
from actions.remote.nodes import RemoteNodes
from config.node_names import NodeName
from tests.actions.remote.conftest import Connect
from tests.actions.remote.sshd import Host, free_port
from tests.patience import DEADLINE

A, B, C = NodeName("gpu-01"), NodeName("gpu-02"), NodeName("gpu-03")
SECOND = timedelta(seconds=1)
LONG = timedelta(seconds=DEADLINE)


@pytest.fixture
def began(host: Host, tmp_path: Path) -> Iterator[Path]:
    """A pipe into which the program `endless` writes once it runs; it ends with the test."""
    pipe = tmp_path / "began"
    os.mkfifo(pipe)
    host.program("endless", f"echo began > {pipe}; while [ -e {pipe} ]; do sleep 0.1; done")
    yield pipe
    pipe.unlink()


def _agent_pid(nodes: RemoteNodes) -> int:
    life = nodes._agent._life
    assert life is not None
    return life._child.pid  # type: ignore[attr-defined,no-any-return]


def test_two_nodes_in_one_fan_out_keep_their_own_exit_codes(host: Host, connect: Connect) -> None:
    host.program("exit-code", 'mkdir "$0.first" 2>/dev/null && exit 3; exit 0')
    config = host.ssh_config("codes", {A: host.port, B: host.port})
    results = connect(config).run((A, B), ("exit-code",), LONG)
    assert sorted(result.exit_code or 0 for result in results.values()) == [0, 3]


def test_a_node_that_refuses_has_no_exit_code_while_the_other_answers(
    host: Host, connect: Connect
) -> None:
    config = host.ssh_config("half", {A: host.port, B: free_port()})
    results = connect(config).run((A, B), ("true",), LONG)
    assert results[A].ok
    assert results[B].exit_code is None
    assert "Connection refused" in results[B].lost


def test_more_nodes_than_places_are_all_asked(host: Host, connect: Connect) -> None:
    names = [NodeName(f"gpu-{number:02}") for number in range(9)]
    config = host.ssh_config("many", dict.fromkeys(names, host.port))
    results = connect(config, fan_out=2).run(names, ("true",), LONG)
    assert [results[name].exit_code for name in names] == [0] * 9


def test_output_beyond_the_cap_is_cut_and_the_exit_code_still_comes(
    host: Host, connect: Connect
) -> None:
    host.program("endless", "head -c 3000000 /dev/zero | tr '\\0' x; exit 4")
    result = connect(host.ssh_config("cap", {A: host.port})).run((A,), ("endless",), LONG)[A]
    assert (result.exit_code, result.truncated, len(result.output)) == (4, True, 1 << 20)


def test_a_command_over_its_limit_has_no_exit_code(host: Host, connect: Connect) -> None:
    nodes = connect(host.ssh_config("slow", {A: host.port}))
    result = nodes.run((A,), ("sleep", "1000"), SECOND)[A]
    assert result.exit_code is None
    assert "time limit" in result.lost


def test_bytes_that_are_not_utf8_survive(host: Host, connect: Connect) -> None:
    host.program("not-utf8", "printf 'a\\377b\\n'")
    result = connect(host.ssh_config("bytes", {A: host.port})).run((A,), ("not-utf8",), LONG)[A]
    assert result.output == "a\\xffb\n"


def test_arguments_stay_arguments(host: Host, connect: Connect) -> None:
    nodes = connect(host.ssh_config("words", {A: host.port}))
    result = nodes.run((A,), ("echo", "%hosts;$(id) `id` 'x"), LONG)[A]
    assert result.output == "%hosts;$(id) `id` 'x\n"


def test_a_secret_in_an_output_is_redacted(host: Host, connect: Connect) -> None:
    host.program("secret", "echo token=hunter2; echo hunter2 >&2")
    result = connect(host.ssh_config("secret", {A: host.port})).run((A,), ("secret",), LONG)[A]
    assert result.output == "token=[redacted]\n"
    assert "hunter2" not in result.errors


def test_a_command_that_is_not_listed_is_refused_before_anything_starts(
    connect: Connect, tmp_path: Path
) -> None:
    nodes = connect(tmp_path / "no-config")
    with pytest.raises(Refusal, match="list of commands"):
        nodes.run((A,), ("reboot",), LONG)
    with pytest.raises(Refusal, match="list of units"):
        nodes.service(A, "sshd")
    assert nodes._agent._life is None


def test_an_agent_killed_in_mid_command_is_lost_and_the_next_call_works(
    host: Host, connect: Connect, began: Path
) -> None:
    nodes = connect(host.ssh_config("killed", {A: host.port}))
    found = []
    caller = threading.Thread(target=lambda: found.append(nodes.run((A,), ("endless",), LONG)[A]))
    caller.start()
    began.read_text()  # returns once the command runs
    os.kill(_agent_pid(nodes), signal.SIGKILL)
    caller.join(DEADLINE)
    assert found[0].exit_code is None
    assert "node agent died" in found[0].lost
    assert nodes.run((A,), ("true",), LONG)[A].ok


def test_a_slow_node_holds_up_nobody_else(host: Host, connect: Connect, began: Path) -> None:
    nodes = connect(host.ssh_config("both", {A: host.port, B: host.port}))
    caller = threading.Thread(target=lambda: nodes.run((A,), ("endless",), LONG))
    caller.start()
    began.read_text()
    assert nodes.run((B,), ("true",), LONG)[B].ok
    assert caller.is_alive()
    nodes.close()
    caller.join(DEADLINE)
    assert not caller.is_alive()


def test_when_the_agent_ends_its_connections_end_too(
    host: Host, connect: Connect, began: Path
) -> None:
    nodes = connect(host.ssh_config("orphans", {A: host.port}))
    caller = threading.Thread(target=lambda: nodes.run((A,), ("endless",), LONG))
    caller.start()
    began.read_text()
    children = Path(f"/proc/{_agent_pid(nodes)}/task/{_agent_pid(nodes)}/children")
    watched = [os.pidfd_open(int(pid)) for pid in children.read_text().split()]
    nodes.close()
    caller.join(DEADLINE)
    assert len(watched) == 1
    for descriptor in watched:
        with os.fdopen(descriptor) as ended:
            gone, _, _ = select.select([ended], [], [], DEADLINE)
            assert gone, "an ssh process outlived its agent"


def test_the_agent_itself_keeps_no_more_than_the_cap(host: Host, connect: Connect) -> None:
    nodes = connect(host.ssh_config("agent-cap", {A: host.port}))
    question = Question(nodes=(A,), command="seq 100000; exit 4", limit_ms=300_000, cap=10)
    answer = nodes._agent.ask(question)[A]
    assert (answer.exit_code, answer.output, answer.truncated) == (4, "1\n2\n3\n4\n5\n", True)


def test_a_forked_process_gets_an_agent_of_its_own(host: Host, connect: Connect) -> None:
    nodes = connect(host.ssh_config("forked", {A: host.port}))
    assert nodes.run((A,), ("true",), LONG)[A].ok
    child = os.fork()
    if child == 0:
        worked = False
        try:
            worked = nodes.run((A,), ("true",), LONG)[A].ok
        finally:
            os._exit(0 if worked else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert nodes.run((A,), ("true",), LONG)[A].ok
