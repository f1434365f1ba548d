"""The command starts everything, says where, and leaves nothing behind, however it ends."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bot.sandbox.playground import SandboxError
from bot.sandbox.sandbox import Sandbox, SandboxOptions
from bot.testbed.commands import as_user
from bot.testbed.interpreter import python_for
from tests.patience import DEADLINE, until
from tests.testbed.fixture import fresh_folder

ROOT = Path(__file__).parents[3]


@contextmanager
def _running(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command in a process of its own, and what it printed until it was ready."""
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-m", "bot.cli", "sandbox", "--scene", "small", *options]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, cwd="/"
    ) as process:
        try:
            assert process.stdout is not None
            lines = []
            for line in process.stdout:
                lines.append(line)
                if "NODEWARDEN_SOCKET" in line:
                    break
            yield process, "".join(lines)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose Unix sockets have names below the kernel's 108 bytes, however tests are run."""
    with tempfile.TemporaryDirectory(prefix="nwsb-") as folder:
        yield Path(folder)


def _processes_below(folder: Path) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            if str(folder).encode() in words:
                found.append(words.decode().replace("\0", " "))
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_ends_everything_and_takes_the_state_away(
    short: Path, number: signal.Signals
) -> None:
    with _running(short) as (process, said):
        assert len(_processes_below(short)) == 2, "the cluster and the bot"
        process.send_signal(number)
        rest, _ = process.communicate(timeout=DEADLINE)
        assert process.returncode == 0, rest
    assert re.search(r"http://127\.0\.0\.1:\d+", said)
    assert len(re.findall(r"^  [123]\. ", said, re.MULTILINE)) == 3
    assert _processes_below(short) == []
    assert list(short.iterdir()) == []


def test_after_a_kill_no_bot_and_no_cluster_lives_on(short: Path) -> None:
    with _running(short) as (process, _):
        process.kill()
        process.wait(DEADLINE)
        until(lambda: not _processes_below(short), lambda: _processes_below(short))


def test_the_command_line_of_another_shell_reaches_the_bot(short: Path) -> None:
    with _running(short) as (_, said):
        found = re.search(r"NODEWARDEN_SOCKET=(\S+)", said)
        assert found is not None
        environment = {**os.environ, "NODEWARDEN_SOCKET": found[1], "PYTHONPATH": str(ROOT)}
        answer = subprocess.run(
            [sys.executable, "-m", "bot.cli", "status"],
            capture_output=True,
            text=True,
            env=environment,
            check=True,
        )
    assert "sandbox: 12 nodes, 0 out, 0 jobs run" in answer.stdout


def test_a_kept_folder_remembers_its_runs(short: Path) -> None:
    options = SandboxOptions(scene="small", folder=short / "kept")
    with Sandbox(options) as box:
        box.start_bot()
        assert box.ask("drain", "gpu-11", "RMA", "4711")["run"] == "run-1"
    with Sandbox(options) as box:
        box.start_bot()
        assert "run-1 drain-node gpu-11" in box.ask("status", "run-1")["lines"][0]


def test_a_taken_port_is_said_and_leaves_nothing(short: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        options = SandboxOptions(scene="small", port=taken.getsockname()[1], folder=short)
        with pytest.raises(SandboxError, match="in use"):
            Sandbox(options).__enter__()
    assert _processes_below(short) == []


def test_a_scene_that_cannot_be_played_is_named(short: Path) -> None:
    options = SandboxOptions(scene=str(short / "absent.yaml"), folder=short)
    with pytest.raises(SandboxError, match=r"absent\.yaml"):
        Sandbox(options).__enter__()


def test_without_root_the_demo_says_so_in_one_line_and_is_played_on_the_simulation() -> None:
    with fresh_folder() as place:
        place.mkdir(mode=0o777)
        place.chmod(0o777)
        argv = ["-m", "bot.cli", "sandbox", "--demo"]
        if os.geteuid() == 0:
            argv = as_user("nobody", [*python_for("nobody"), *argv], {"TMPDIR": str(place)})
        else:
            argv = ["/usr/bin/env", f"TMPDIR={place}", sys.executable, *argv]
        done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, check=False)
        left = list(place.iterdir())
    assert done.returncode == 0, done.stdout + done.stderr
    first, second, third = done.stdout.splitlines()[:3]
    assert first == (
        "A simulated cluster is used, because the Slurm testbed needs root; run it as root."
    )
    assert second.startswith("Starting a cluster")
    assert third.startswith("The bot runs on a simulated cluster of 12 nodes.")
    assert left == []


def test_time_that_jumps_in_the_simulation_does_not_stop_the_bot(lively: Sandbox) -> None:
    for _ in range(3):
        lively.playground.cluster_plugs["clock +1 min"]()
    lively.playground.kill_slurmd("gpu-04")
    assert lively.ask("run", "node-dropped", "gpu-04")["run"] == "run-1"
    lively.slack.channel("#ops").expect("did service.start gpu-04")
