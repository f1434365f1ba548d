"""The verdict on reachability, from a real ssh against real listeners."""

import socket
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from actions.remote.ssh_verdict import verdict
from actions.remote.wire import Answer
from actions.remote_values import Reach
from config.node_names import NodeName, NodeNameError
from tests.actions.remote.conftest import Connect
from tests.actions.remote.sshd import Host, free_port, known_hosts, make_key

NODE = NodeName("gpu-01")
HASTE = timedelta(seconds=2)
"""For what never answers."""


def test_a_node_that_runs_a_command_is_alive(host: Host, connect: Connect) -> None:
    nodes = connect(host.ssh_config("alive", {NODE: host.port}))
    assert nodes.reach(NODE).reach is Reach.ALIVE


def test_a_closed_port_is_refused_with_sshs_own_line(host: Host, connect: Connect) -> None:
    found = connect(host.ssh_config("refused", {NODE: free_port()})).reach(NODE)
    assert found.reach is Reach.REFUSED
    assert "Connection refused" in found.evidence


def test_a_key_that_is_not_accepted_is_auth_failed(
    host: Host, connect: Connect, tmp_path: Path
) -> None:
    stranger = make_key(tmp_path / "stranger")
    found = connect(host.ssh_config("auth", {NODE: host.port}, key=stranger)).reach(NODE)
    assert found.reach is Reach.AUTH_FAILED
    assert "Permission denied" in found.evidence


def test_another_host_key_than_the_known_one_is_seen(
    host: Host, connect: Connect, tmp_path: Path
) -> None:
    make_key(tmp_path / "other")
    known_hosts(tmp_path, tmp_path / "other.pub")
    config = tmp_path / "config"
    config.write_text(
        host.ssh_config("changed", {NODE: host.port})
        .read_text()
        .replace(str(host.folder / "known_hosts"), str(tmp_path / "known_hosts"))
    )
    found = connect(config).reach(NODE)
    assert found.reach is Reach.HOST_KEY_CHANGED
    assert found.reach.host_alive


def test_a_host_whose_key_is_not_known_is_not_trusted(
    host: Host, connect: Connect, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    text = host.ssh_config("unknown", {NODE: host.port}).read_text()
    config.write_text(text.replace(str(host.folder / "known_hosts"), str(tmp_path / "none")))
    assert connect(config).reach(NODE).reach is Reach.HOST_KEY_CHANGED


def test_a_banner_and_then_the_end_is_a_banner_but_no_shell(host: Host, connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet() -> None:
            client, _ = listener.accept()
            with client:
                client.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
                client.recv(64)

        greeter = threading.Thread(target=greet)
        greeter.start()
        found = connect(host.ssh_config("banner", {NODE: listener.getsockname()[1]})).reach(NODE)
        greeter.join()
    assert found.reach is Reach.NO_SHELL
    assert found.reach.host_alive


def test_a_login_that_runs_nothing_is_a_banner_but_no_shell(host: Host, connect: Connect) -> None:
    host.program("timeout", "echo This account is currently not available.; exit 1")
    found = connect(host.ssh_config("nologin", {NODE: host.port})).reach(NODE)
    assert found.reach is Reach.NO_SHELL


def test_a_socket_that_never_answers_is_a_time_out(host: Host, connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = host.ssh_config("mute", {NODE: listener.getsockname()[1]})
        found = connect(config, connect_limit=HASTE).reach(NODE)
    assert found.reach is Reach.TIME_OUT
    assert not found.reach.host_alive


def test_a_name_that_leads_nowhere_is_no_route(
    host: Host, connect: Connect, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    config.write_text("Host gpu-01\n  HostName no-such-host.invalid\n")
    found = connect(config).reach(NODE)
    assert found.reach is Reach.NO_ROUTE
    assert "no-such-host.invalid" in found.evidence


def test_silence_is_no_finding_when_the_bot_itself_is_cut_off(host: Host, connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = host.ssh_config("cut-off", {NODE: listener.getsockname()[1]})
        found = connect(config, connected=False, connect_limit=HASTE).reach(NODE)
    assert found.reach is Reach.NOT_ASKED
    assert "cut off" in found.evidence


def test_a_refusal_is_a_finding_even_then(host: Host, connect: Connect) -> None:
    config = host.ssh_config("cut-off-refused", {NODE: free_port()})
    assert connect(config, connected=False).reach(NODE).reach is Reach.REFUSED


def test_a_broken_ssh_configuration_is_no_finding_about_a_node(
    host: Host, connect: Connect, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    config.write_text("NoSuchWord yes\n")
    assert connect(config).reach(NODE).reach is Reach.NOT_ASKED


@pytest.mark.parametrize("name", ["-oProxyCommand=x", "gpu-01\n", '@x";touch F;"', "*", "a b", ""])
def test_a_hostile_name_is_refused_before_anything_starts(
    name: str, connect: Connect, tmp_path: Path
) -> None:
    nodes = connect(tmp_path / "no-config")
    with pytest.raises(NodeNameError):
        nodes.reach(NodeName(name))
    assert nodes._agent._life is None


def test_the_banner_is_the_other_sides_text_and_decides_nothing() -> None:
    said = (
        "debug1: Remote protocol version 2.0, remote software version Permission denied\n"
        "Connection closed by 127.0.0.1 port 22\n"
    )
    found = verdict(Answer(id=1, node=NODE, exit_code=None, errors=said, lost="ssh: closed"))
    assert found.reach is Reach.NO_SHELL


def test_a_lost_answer_is_no_finding() -> None:
    found = verdict(Answer(id=1, node=NODE, exit_code=None, lost="the node agent died"))
    assert found.reach is Reach.NOT_ASKED


def test_a_shell_that_never_comes_is_a_banner_but_no_shell_with_our_own_limit_as_evidence() -> None:
    said = (
        "debug1: Remote protocol version 2.0, remote software version OpenSSH_9.2p1\n"
        "debug1: channel 0: new session [client-session] (inactive timeout: 0)\n"
    )
    answer = Answer(id=1, node=NODE, exit_code=None, errors=said, lost="no answer within 16 s")
    found = verdict(answer)
    assert found.reach is Reach.NO_SHELL
    assert found.evidence.startswith("no answer within 16 s")
