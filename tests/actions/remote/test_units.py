"""Units on a real login: their state, start and restart, and one visit for all facts."""

import fcntl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from actions.contract import Refusal, Unreadable
from actions.remote.nodes import RemoteNodes
from actions.remote.settings import RemoteSettings
from actions.remote.unit_commands import change_command, parse_show, parse_stamp
from actions.remote.visit import Span, parse_visit
from actions.remote_values import CommandResult, ServiceState
from config.node_names import NodeName
from tests.actions.remote.conftest import Connect
from tests.actions.remote.sshd import Host, free_port

A = NodeName("gpu-01")
BOOT = "0a1b2c3d-1111-2222-3333-444455556666"
SHOWN = """LoadState=loaded
ActiveState=failed
SubState=failed
MainPID=0
KillMode=process
Delegate=yes
Result=signal
InactiveEnterTimestamp=Mon 2026-11-30 17:20:09 UTC
ActiveEnterTimestamp=Mon 2026-11-30 16:00:00 UTC
"""


@pytest.fixture
def node(host: Host, connect: Connect) -> RemoteNodes:
    return connect(host.ssh_config("units", {A: host.port}))


def test_a_failed_unit_says_since_when(host: Host, node: RemoteNodes) -> None:
    host.program("systemctl", f"cat <<'END'\n{SHOWN}END")
    found = node.service(A, "slurmd")
    assert found.state is ServiceState.FAILED
    assert found.since == datetime(2026, 11, 30, 17, 20, 9, tzinfo=UTC)
    assert (found.kill_mode, found.delegate, found.main_pid) == ("process", "yes", 0)
    assert "Result=signal" in found.detail


def test_a_node_that_does_not_answer_says_nothing_of_its_units(
    host: Host, connect: Connect
) -> None:
    found = connect(host.ssh_config("none", {A: free_port()})).service(A, "slurmd")
    assert found.state is ServiceState.UNKNOWN
    assert "Connection refused" in found.detail


def test_a_start_passes_unit_and_verb_to_systemctl(host: Host, node: RemoteNodes) -> None:
    host.program("systemctl", f'echo "$@" >> {host.folder}/asked; exit 0')
    assert node.start_service(A, "slurmd", "nw-0a1b2c3d-run-1-start-1").ok
    assert node.restart_service(A, "slurmd", "nw-0a1b2c3d-run-1-again-1").ok
    asked = (host.folder / "asked").read_text().splitlines()
    assert asked == ["start -- slurmd", "restart -- slurmd"]


def test_a_second_start_while_one_holds_the_lock_does_nothing(
    host: Host, node: RemoteNodes
) -> None:
    host.program("systemctl", f"touch {host.folder}/second")
    with Path("/run/lock/nodewarden-munge").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = node.start_service(A, "munge", "nw-0a1b2c3d-run-1-start-1")
    assert result.exit_code == 75
    assert not (host.folder / "second").exists()


def test_systemctls_own_no_is_passed_on(host: Host, node: RemoteNodes) -> None:
    host.program("systemctl", "echo Failed to start slurmd.service >&2; exit 1")
    result = node.start_service(A, "slurmd", "nw-0a1b2c3d-run-1-start-1")
    assert result.exit_code == 1
    assert "Failed to start" in result.errors


def test_a_start_that_never_ends_has_an_unknown_outcome(host: Host, connect: Connect) -> None:
    host.program("systemctl", "exec sleep 60")
    nodes = connect(host.ssh_config("slow", {A: host.port}), start_limit=timedelta(seconds=1))
    result = nodes.start_service(A, "slurmd", "nw-0a1b2c3d-run-1-start-1")
    assert result.exit_code is None
    assert "time limit" in result.lost


@pytest.mark.parametrize("effect", ["", "a b", "-x", "a;b", "a\nb"])
def test_an_effect_id_that_cannot_name_a_unit_is_refused(effect: str, node: RemoteNodes) -> None:
    with pytest.raises(Refusal):
        node.start_service(A, "slurmd", effect)


def test_where_systemd_runs_the_effect_is_a_transient_unit_of_its_name(
    host: Host,
) -> None:
    settings = RemoteSettings(ssh_config=host.folder)
    script = change_command("start", "slurmd", "nw-1-run-1-s-1", settings)[2]
    transient, plain = script.split("; else exec ")
    assert "exec systemd-run --unit=nw-1-run-1-s-1 --collect --wait" in transient
    assert transient.endswith('flock -n -E 75 "$lock" timeout -k 5 60 systemctl start -- slurmd')
    assert plain.startswith('flock -n -E 75 "$lock" timeout -k 5 60 systemctl start')


@pytest.mark.parametrize(
    ("said", "version"),
    [("slurm 25.11.7", "25.11.7"), ("slurm-wlm 22.05.8", "22.05.8"), ("no such thing 1", "")],
)
def test_the_version_of_slurmd_is_read_whoever_packaged_it(said: str, version: str) -> None:
    span = Span(asked=datetime(2026, 1, 1, tzinfo=UTC), answered=datetime(2026, 1, 1, tzinfo=UTC))
    facts = parse_visit(f"w begin version\n{said}\n\nw end 0\n", "w", span)
    assert facts.slurmd_version == version


def test_one_visit_reads_all_facts(host: Host, node: RemoteNodes) -> None:
    host.program("nvidia-smi", "echo 'GPU 0: H100 (UUID: x)'; echo 'GPU 1: H100 (UUID: y)'")
    host.program(
        "slurmd",
        'test "$1" = -V && echo slurm 25.11.7 && exit; '
        'test "$1" = -G && echo "slurmd: Gres Name=gpu Type=h100 Count=2 Index=0" && exit; '
        "echo NodeName=gpu-01 CPUs=8 Boards=1 RealMemory=1000; echo UpTime=0-01:00:00",
    )
    host.program("munge", "echo MUNGE:x")
    host.program("unmunge", 'read made; test "$made" = MUNGE:x')
    host.program(
        "journalctl",
        'case "$*" in *"-b -1"*) echo old panic;; *) echo quiet; echo "NVRM: Xid (79)";; esac',
    )
    facts = node.host_facts(A)
    assert facts.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert (facts.gpus_seen, facts.cpus, facts.memory_mib) == (2, 8, 1000)
    assert facts.slurmd_version == "25.11.7"
    assert (facts.gres_seen, facts.munge_ok) == ("gpu:h100:2", True)
    assert facts.kernel_tail == "NVRM: Xid (79)"
    assert facts.previous_boot_tail == "old panic"
    assert facts.clock_offset_ms == 0
    assert facts.booted_at is not None
    assert facts.booted_at < datetime.now(UTC)
    assert facts.not_read == ()


def test_parts_that_fail_are_not_read_and_the_others_are(host: Host, node: RemoteNodes) -> None:
    host.program("nvidia-smi", "echo Failed to initialize NVML; exit 18")
    host.program("slurmd", "exit 1")
    host.program("journalctl", "exit 1")
    host.program("dmesg", "exit 1")
    facts = node.host_facts(A)
    assert facts.boot_id
    assert (facts.gpus_seen, facts.cpus, facts.memory_mib) == (None, None, None)
    assert set(facts.not_read) == {"gpus", "slurmd", "kernel", "previous"}


def test_a_reading_that_hangs_costs_only_itself(host: Host, connect: Connect) -> None:
    host.program("nvidia-smi", "exec sleep 60")
    nodes = connect(host.ssh_config("hang", {A: host.port}), read_limit=timedelta(seconds=1))
    facts = nodes.host_facts(A)
    assert facts.boot_id
    assert facts.gpus_seen is None
    assert "gpus" in facts.not_read


def test_a_visit_without_any_answer_cannot_be_believed(host: Host, connect: Connect) -> None:
    with pytest.raises(Unreadable, match="gpu-01"):
        connect(host.ssh_config("gone", {A: free_port()})).host_facts(A)


def test_a_log_line_cannot_pass_for_a_fact() -> None:
    span = Span(asked=datetime(2026, 1, 1, tzinfo=UTC), answered=datetime(2026, 1, 1, tzinfo=UTC))
    forged = f"w1 begin kernel\nother begin boot\n{BOOT}\nother end 0\n\nw1 end 0\n"
    facts = parse_visit(forged, "w1", span)
    assert facts.boot_id == ""
    assert "boot" in facts.not_read


def test_a_visit_that_was_broken_off_gives_the_parts_that_were_complete() -> None:
    span = Span(asked=datetime(2026, 1, 1, tzinfo=UTC), answered=datetime(2026, 1, 1, tzinfo=UTC))
    facts = parse_visit(f"w begin boot\n{BOOT}\n\nw end 0\nw begin gpus\nGPU 0: x\n", "w", span)
    assert (facts.boot_id, facts.gpus_seen) == (BOOT, None)


@pytest.mark.parametrize(
    ("seconds", "offset"), [(0, 0), (3, 0), (90, 80_000), (-90, -90_000), (10, 0)]
)
def test_the_clock_offset_is_what_the_way_cannot_explain(seconds: int, offset: int) -> None:
    asked = datetime(2026, 1, 1, tzinfo=UTC)
    span = Span(asked=asked, answered=asked + timedelta(seconds=10))
    nanoseconds = int((asked + timedelta(seconds=seconds)).timestamp()) * 10**9
    output = "".join(
        f"w begin {part}\n{nanoseconds}\n\nw end 0\n" for part in ("clock", "clock-end")
    )
    assert parse_visit(output, "w", span).clock_offset_ms == offset


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("Mon 2026-11-30 17:20:09 UTC", datetime(2026, 11, 30, 17, 20, 9, tzinfo=UTC)),
        ("2026-11-30 17:20:09 UTC", datetime(2026, 11, 30, 17, 20, 9, tzinfo=UTC)),
        ("@1796059209", datetime(2026, 11, 30, 17, 20, 9, tzinfo=UTC)),
        ("Mon 2026-11-30 17:20:09 CET", None),
        ("Mon 2026-13-30 17:20:09 UTC", None),
        ("n/a", None),
        ("", None),
    ],
)
def test_only_a_time_in_utc_is_read(text: str, moment: datetime | None) -> None:
    assert parse_stamp(text) == moment


@pytest.mark.parametrize(
    ("output", "state"),
    [
        ("LoadState=not-found\nActiveState=inactive\n", ServiceState.NOT_FOUND),
        ("ActiveState=active\nMainPID=12\n", ServiceState.ACTIVE),
        ("ActiveState=new-in-systemd-300\n", ServiceState.UNKNOWN),
        ("", ServiceState.UNKNOWN),
    ],
)
def test_the_state_is_what_systemd_names(output: str, state: ServiceState) -> None:
    assert parse_show("slurmd", CommandResult(exit_code=0, output=output)).state is state


def test_an_answer_with_an_error_code_names_no_state() -> None:
    result = CommandResult(exit_code=1, output="ActiveState=active\n")
    assert parse_show("slurmd", result).state is ServiceState.UNKNOWN
