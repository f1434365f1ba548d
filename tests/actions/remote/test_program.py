"""The node's program over a real login: by sudo, by a forced command, and everything that can be wrong."""

import fcntl
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from actions.contract import Refusal, Unreadable
from actions.node_readings import PortAnswer
from actions.remote import ports
from actions.remote.nodes import RemoteNodes
from actions.remote.packing import digest
from actions.remote_values import CommandResult, Reach, ServiceState
from actions.vantage import Answer
from config.node_access import NodeAccess
from config.node_names import NodeName
from tests.actions.remote.conftest import Connect
from tests.actions.remote.on_node.installed import OWNER, Installed, installed
from tests.actions.remote.sshd import Host, make_key
from tests.patience import DEADLINE

A = NodeName("gpu-01")
EFFECT = "nw-0a1b2c3d-run-1-start-1"
SHOWN = "LoadState=loaded\nActiveState=active\nMainPID=7\nKillMode=process\nDelegate=yes\n"


@pytest.fixture
def program(sshd: Host) -> Iterator[Installed]:
    """The program on the node that sshd plays."""
    with installed() as here:
        yield here


@pytest.fixture
def by_sudo(host: Host, program: Installed, connect: Connect) -> RemoteNodes:
    """A stand-in for sudo: checks its two words and runs the installed program."""
    host.program(
        "sudo",
        'test "$1 $2" = "-n /usr/local/sbin/nodewarden-helper" || exit 99\n'
        f'shift 2; exec {program.program} "$@"',
    )
    return connect(host.ssh_config("sudo", {A: host.port}), access=NodeAccess.SUDO)


@pytest.fixture
def forced_config(host: Host, program: Installed) -> Iterator[Path]:
    """A key of its own that is bound to the program."""
    key = make_key(host.folder / "bound")
    keys = host.folder / "authorized_keys"
    before = keys.read_text()
    public = (host.folder / "bound.pub").read_text()
    keys.write_text(f'{before}restrict,command="{program.program} forced" {public}')
    yield host.ssh_config("forced", {A: host.port}, key=key)
    keys.write_text(before)
    for name in ("bound", "bound.pub"):
        (host.folder / name).unlink()


@pytest.fixture
def forced(forced_config: Path, connect: Connect) -> RemoteNodes:
    return connect(forced_config, access=NodeAccess.FORCED)


@pytest.fixture(params=["by_sudo", "forced"])
def nodes(request: pytest.FixtureRequest) -> RemoteNodes:
    """Either way."""
    found: RemoteNodes = request.getfixturevalue(request.param)
    return found


def test_a_start_is_carried_out_once(program: Installed, nodes: RemoteNodes) -> None:
    program.counting()
    assert nodes.start_service(A, "slurmd", EFFECT).ok
    assert nodes.start_service(A, "slurmd", EFFECT).ok
    assert program.started() == ["--no-ask-password start -- slurmd"]


def test_a_unit_is_shown(program: Installed, nodes: RemoteNodes) -> None:
    program.tool("systemctl", f"cat <<'END'\n{SHOWN}END")
    found = nodes.service(A, "slurmd")
    assert (found.state, found.kill_mode, found.delegate) == (
        ServiceState.ACTIVE,
        "process",
        "yes",
    )


def test_one_visit_reads_all_facts(program: Installed, nodes: RemoteNodes) -> None:
    program.tool("nvidia-smi", "echo 'GPU 0: H100'; echo 'GPU 1: H100'")
    program.tool(
        "slurmd",
        'case "$1" in -V) echo slurm 25.11.7;; -C) echo NodeName=a CPUs=8 RealMemory=1000;;\n'
        '-G) echo "slurmd: Gres Name=gpu Type=h100 Count=6 Index=0 (null)" >&2\n'
        'echo "slurmd: Gres Name=gpu Type=h100 Count=2 Index=0 (null)" >&2;; esac',
    )
    program.tool("journalctl", "echo quiet; echo 'NVRM: Xid (79)'")
    program.tool("munge", "echo MUNGE:x")
    program.tool("unmunge", "cat >/dev/null")
    facts = nodes.host_facts(A)
    assert facts.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert (facts.gpus_seen, facts.cpus, facts.memory_mib) == (2, 8, 1000)
    assert (facts.slurmd_version, facts.gres_seen) == ("25.11.7", "gpu:h100:8")
    assert (facts.munge_ok, facts.clock_offset_ms) == (True, 0)
    assert facts.kernel_tail == "NVRM: Xid (79)"
    assert facts.booted_at is not None
    assert facts.not_read == ()


def test_reach_boot_and_log(program: Installed, nodes: RemoteNodes) -> None:
    program.tool("journalctl", 'echo "$*"')
    assert nodes.reach(A).reach is Reach.ALIVE
    assert nodes.boot_ids((A,))[A].value == nodes.host_facts(A).boot_id
    assert "-b -1" in nodes.kernel_log(A, previous_boot=True).output
    assert "-u munge -n 7" in nodes.unit_log(A, "munge", 7).output
    assert nodes.installed(A) == digest()


def test_files_stacks_and_other_hosts_are_read(program: Installed, nodes: RemoteNodes) -> None:
    log = program.files / "it's a $(log)"
    log.write_text("step 7\n")
    log.chmod(0o644)
    child = subprocess.Popen(["sleep", "1000"], env={"SLURM_JOB_ID": "4711", "PATH": "/usr/bin"})
    try:
        (found,) = nodes.stacks(A, 4711)
    finally:
        child.kill()
        child.wait()
    assert (found.pid, found.command) == (child.pid, "sleep 1000")
    assert nodes.file_tail(A, OWNER, str(log), 100).text == "step 7\n"
    listed = nodes.file_list(A, OWNER, str(program.files), "*")
    assert [entry.name for entry in listed.entries] == [log.name]
    (tried,) = nodes.tcp_try(A, "127.0.0.1", [1])
    assert (tried.port, tried.answer) == (1, PortAnswer.REFUSED)


def test_a_neighbour_tries_ports_either_way(program: Installed, nodes: RemoteNodes) -> None:
    told = ports.told(A, nodes.ports_tried(A, "127.0.0.1", [1]), [1])
    assert told.answer is Answer.ANSWERED
    assert "refused" in told.evidence


def test_what_the_node_does_not_allow_is_a_refusal_with_its_words(
    program: Installed, nodes: RemoteNodes
) -> None:
    program.configuration.write_text("units = munge\n")
    with pytest.raises(Refusal, match="not in the list of /etc/nodewarden"):
        nodes.start_service(A, "slurmd", EFFECT)
    with pytest.raises(Refusal, match="below no root"):
        nodes.file_tail(A, OWNER, "/etc/passwd", 10)
    with pytest.raises(Refusal, match="not of those"):
        nodes.tcp_try(A, "127.0.0.1", [22])
    assert nodes.service(A, "slurmd").state is ServiceState.UNKNOWN


def test_an_effect_that_was_begun_and_never_ended_has_an_unknown_outcome(
    program: Installed, nodes: RemoteNodes
) -> None:
    program.counting()
    notes = program.state / "effects"
    notes.mkdir(parents=True, mode=0o700)
    program.state.chmod(0o700)
    what = '{"what": ["service-start", "slurmd"], "began": "2026-11-30T17:20:00Z"}'
    (notes / EFFECT).write_text(what)
    result = nodes.start_service(A, "slurmd", EFFECT)
    assert result.exit_code is None
    assert "began at 2026-11-30T17:20:00Z" in result.lost
    assert program.started() == []


def test_an_effect_goes_on_and_is_noted_when_the_connection_is_gone(
    program: Installed, nodes: RemoteNodes
) -> None:
    gate, began = program.root / "gate", program.root / "began"
    os.mkfifo(gate)
    os.mkfifo(began)
    program.counting(f"echo began > {began}; cat {gate}")
    found: list[CommandResult] = []
    caller = threading.Thread(target=lambda: found.append(nodes.start_service(A, "slurmd", EFFECT)))
    caller.start()
    began.read_text()  # returns once systemctl runs
    nodes.close()
    caller.join(DEADLINE)
    gate.write_text("go on\n")
    with (program.state / "effect.lock").open("r") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # free once the end of the effect was noted
    note = json.loads((program.state / "effects" / EFFECT).read_text())
    assert found[0].exit_code is None
    assert note["code"] == 0
    assert nodes.start_service(A, "slurmd", EFFECT).ok
    assert len(program.started()) == 1


@pytest.mark.parametrize(
    "sudo",
    [
        "echo 'sudo: a password is required' >&2; exit 1",
        "echo \"Sorry, user nodewarden is not allowed to execute '/x' as root on a.\" >&2; exit 1",
        "echo 'sudo: /usr/local/sbin/nodewarden-helper: command not found' >&2; exit 1",
        "echo 'sh: sudo: not found' >&2; exit 127",
    ],
)
def test_a_sudo_that_says_no_is_a_refusal_and_no_failed_start(
    sudo: str, host: Host, by_sudo: RemoteNodes
) -> None:
    host.program("sudo", sudo)
    with pytest.raises(Refusal, match="helper install"):
        by_sudo.start_service(A, "slurmd", EFFECT)
    with pytest.raises(Unreadable, match="helper install"):
        by_sudo.host_facts(A)
    assert by_sudo.reach(A).reach is Reach.ALIVE
    assert by_sudo.boot_ids((A,))[A].value


def test_systemctls_own_no_is_no_refusal(program: Installed, nodes: RemoteNodes) -> None:
    program.tool("systemctl", "echo Failed to start slurmd.service >&2; exit 1")
    result = nodes.start_service(A, "slurmd", EFFECT)
    assert result.exit_code == 1
    assert "Failed to start" in result.errors


@pytest.mark.parametrize(
    "command",
    ["id", "sh -c id", "version; id", "version && id", "$(id)", "`id`", "boot | id", "'", ""],
)
def test_a_bound_key_runs_nothing_but_the_program(command: str, forced_config: Path) -> None:
    argv = ["ssh", "-F", str(forced_config), "-o", "StrictHostKeyChecking=yes", A]
    done = subprocess.run(
        [*argv, command], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert done.returncode == 64
    assert b"uid=" not in done.stdout
    assert b"refused: not a verb" in done.stderr or b"refused: usage" in done.stderr


def test_a_bound_key_runs_no_free_command(forced: RemoteNodes) -> None:
    with pytest.raises(Refusal, match="node_access: forced"):
        forced.run((A,), ("true",), forced._settings.read_limit)


def test_without_the_program_its_own_verbs_are_refused(host: Host, connect: Connect) -> None:
    plain = connect(host.ssh_config("plain", {A: host.port}))
    with pytest.raises(Refusal, match="node_access: plain"):
        plain.file_tail(A, OWNER, "/srv/x", 10)


def test_an_answer_in_another_form_cannot_be_believed(host: Host, by_sudo: RemoteNodes) -> None:
    host.program("sudo", "echo hello")
    with pytest.raises(Unreadable, match="form"):
        by_sudo.stacks(A, 7)
    with pytest.raises(Unreadable, match="form"):
        by_sudo.host_facts(A)
