"""`doctor` and the way to nodes: another version, a missing program, a login refused, loose host keys."""

from pathlib import Path

import pytest

from actions.remote.access_check import AccessCheck
from actions.remote.packing import program as packed
from actions.remote_values import Reach, Reachability
from actions.shell import Runner
from config.node_access import NodeAccess
from config.node_names import NodeName
from tests.actions.remote.conftest import Connect
from tests.actions.remote.on_node.installed import installed
from tests.actions.remote.sshd import Host, free_port

A = NodeName("gpu-01")


def check(connect: Connect, config: Path) -> AccessCheck:
    nodes = connect(config, access=NodeAccess.SUDO)
    return AccessCheck(nodes, nodes._settings, Runner())


def faults(connect: Connect, config: Path) -> list[str]:
    """All but the one that every test of this folder has: it logs in as root."""
    return [text for text in check(connect, config).faults(A) if "as root" not in text]


def test_a_way_in_order_has_no_fault_but_an_account_that_is_root_is_one(
    host: Host, connect: Connect
) -> None:
    with installed() as here:
        host.program("sudo", f'shift 2; exec {here.program} "$@"')
        found = check(connect, host.ssh_config("good", {A: host.port})).faults(A)
    assert found == (
        "ssh goes to gpu-01 as root: give the bot an account of its own in ssh_config",
    )


def test_another_version_and_a_missing_program_are_named(host: Host, connect: Connect) -> None:
    config = host.ssh_config("other", {A: host.port})
    with installed() as here:
        here.program.write_bytes(packed() + b"\n")
        host.program("sudo", f'shift 2; exec {here.program} "$@"')
        (other,) = faults(connect, config)
        host.program("sudo", "echo sudo: a password is required >&2; exit 1")
        (no,) = faults(connect, config)
    assert "another version" in other
    assert "sudo on gpu-01 does not let" in no


def test_a_login_that_needs_a_job_is_said_to_need_an_exemption(
    host: Host, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = host.ssh_config("adopt", {A: host.port})
    said = "Access denied by pam_slurm_adopt: you have no active jobs on this node"
    found = check(connect, config)
    refused = Reachability(reach=Reach.AUTH_FAILED, evidence=said)
    monkeypatch.setattr(found.nodes, "reach", lambda _node: refused)
    (text,) = [text for text in found.faults(A) if "as root" not in text]
    assert "exempt the bot's user from pam_slurm_adopt" in text


def test_a_silent_node_is_said_to_be_silent(host: Host, connect: Connect) -> None:
    (text,) = faults(connect, host.ssh_config("gone", {A: free_port()}))
    assert "gives no shell (refused" in text


@pytest.mark.parametrize(("strict", "bad"), [("accept-new", True), ("no", True), ("yes", False)])
def test_a_jump_host_that_is_believed_whatever_its_key_is_a_fault(
    strict: str, bad: bool, host: Host, connect: Connect
) -> None:
    config = host.ssh_config("jump", {A: host.port})
    config.write_text(
        f"Host jump\n  StrictHostKeyChecking {strict}\nHost {A}\n  ProxyJump ops@jump:22\n"
        f"{config.read_text()}"
    )
    found = check(connect, config)
    assert any("whatever its key" in text for text in found._client(A)) is bad
