"""Real child processes: they die with the bot, their outputs are bounded, nothing is a shell."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from actions.shell import Command, NotStarted, Runner
from tests.patience import DEADLINE

ROOT = str(Path(__file__).parents[2])
LONG = timedelta(seconds=DEADLINE)
ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


@pytest.fixture(scope="module")
def runner() -> Runner:
    return Runner()


def python(code: str, *words: str, limit: timedelta = LONG, cap: int = 1 << 20) -> Command:
    return Command(
        argv=(sys.executable, "-c", code, *words),
        time_limit=limit,
        environment=ENVIRONMENT,
        output_cap=cap,
    )


def gone(pid: int) -> bool:
    """Whether a process has ended (a zombie that nobody reaps has ended too)."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def eventually(true: Callable[[], bool]) -> bool:
    """Poll until it holds or the deadline is over."""
    deadline = time.monotonic() + DEADLINE
    while not true():
        if time.monotonic() > deadline:
            return False
        select.select([], [], [], 0.01)
    return True


HOSTILE = '@x";touch F;" $(touch F) `touch F` \n -oProxyCommand=x \' * <!channel> דנה'


def test_hostile_text_stays_one_argument_and_runs_nothing(runner: Runner, tmp_path: Path) -> None:
    code = "import sys; sys.stdout.buffer.write('\\0'.join(sys.argv[1:]).encode())"
    finished = runner.run(python(code, HOSTILE, str(tmp_path)))
    assert finished.stdout.split("\0") == [HOSTILE, str(tmp_path)]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("argv", [(), ("",), ("a\0b",), ("ls", "\ud800")])
def test_arguments_that_the_kernel_cannot_take_are_refused(argv: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"program|NUL"):
        Command(argv=argv, time_limit=LONG)


def test_the_environment_is_what_was_given_and_nothing_else(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CLUSTERS", "another")
    command = Command(
        argv=("env",), time_limit=LONG, environment={**ENVIRONMENT, "TZ": "UTC", "LC_ALL": "C"}
    )
    lines = set(runner.run(command).stdout.split("\n")) - {""}
    assert lines == {"PATH=/usr/bin:/bin", "TZ=UTC", "LC_ALL=C"}


def test_the_exit_code_is_read_and_both_outputs_are_kept_apart(runner: Runner) -> None:
    finished = runner.run(
        python("import sys; print('o'); print('e', file=sys.stderr); sys.exit(7)")
    )
    assert (finished.exit_code, finished.stdout, finished.stderr) == (7, "o\n", "e\n")
    assert not finished.ok


def test_stdin_reaches_the_child_however_long_it_is(runner: Runner) -> None:
    command = Command(
        argv=("wc", "-c"), time_limit=LONG, environment=ENVIRONMENT, stdin=b"x" * 3_000_000
    )
    assert runner.run(command).stdout.strip() == "3000000"


def test_a_child_that_reads_no_stdin_is_no_error(runner: Runner) -> None:
    command = Command(
        argv=("true",), time_limit=LONG, environment=ENVIRONMENT, stdin=b"x" * 3_000_000
    )
    assert runner.run(command).exit_code == 0


def test_a_missing_program_is_lost_and_certainly_did_nothing(runner: Runner) -> None:
    command = Command(argv=("no-such-tool",), time_limit=LONG, environment=ENVIRONMENT)
    finished = runner.run(command)
    assert (finished.exit_code, finished.started) == (None, False)
    assert "no-such-tool" in finished.lost
    with pytest.raises(NotStarted):
        runner.start(command)


def test_a_child_killed_by_a_signal_has_no_exit_code(runner: Runner) -> None:
    finished = runner.run(python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))
    assert finished.exit_code is None
    assert "SIGKILL" in finished.lost


def test_a_flood_of_output_is_cut_at_the_cap_and_read_to_the_end(runner: Runner) -> None:
    code = "import sys\nfor _ in range(2000): sys.stdout.write('x' * 10000)\nprint('done', file=sys.stderr)"
    finished = runner.run(python(code, cap=5000))
    assert finished.stdout == "x" * 5000
    assert finished.truncated
    assert finished.stderr == "done\n"
    assert finished.exit_code == 0


def test_an_output_of_exactly_the_cap_is_whole(runner: Runner) -> None:
    finished = runner.run(python("print('x' * 99)", cap=100))
    assert (finished.stdout, finished.truncated) == ("x" * 99 + "\n", False)


def test_bytes_that_are_not_utf8_survive(runner: Runner) -> None:
    finished = runner.run(python("import sys; sys.stdout.buffer.write(b'a\\xff\\xd7z')"))
    assert finished.stdout == "a\\xff\\xd7z"


def test_both_outputs_pass_the_redactor(tmp_path: Path) -> None:
    redacting = Runner(lambda text: text.replace("hunter2", "[secret]"))
    code = "import sys; print('a hunter2'); print('b hunter2', file=sys.stderr)"
    finished = redacting.run(python(code))
    assert (finished.stdout, finished.stderr) == ("a [secret]\n", "b [secret]\n")


@pytest.mark.parametrize("place", range(90, 108))
def test_no_half_of_a_secret_is_left_at_the_cut(place: int) -> None:
    redacting = Runner(lambda text: text.replace("CANARYCANARY", "[secret]"))
    finished = redacting.run(python(f"print('.' * {place} + 'CANARYCANARY' + '.' * 500)", cap=100))
    assert "CAN" not in finished.stdout
    assert "ARY" not in finished.stdout


def test_a_timeout_kills_the_grandchild_too_and_says_so(runner: Runner, tmp_path: Path) -> None:
    # The grandchild holds the pipe open: without the group kill the end would not be seen.
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen(['sleep', '1000'])\n"
        "open(sys.argv[1], 'w').write(str(child.pid))\n"
        "child.wait()"
    )
    note = tmp_path / "pid"
    finished = runner.run(python(code, str(note), limit=timedelta(seconds=5)))
    assert finished.timed_out
    assert finished.exit_code is None
    assert "did not end within 5 s" in finished.lost
    assert eventually(lambda: gone(int(note.read_text())))


def test_what_a_finished_child_leaves_behind_is_killed(runner: Runner, tmp_path: Path) -> None:
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen(['sleep', '1000'])\n"
        "open(sys.argv[1], 'w').write(str(child.pid))"
    )
    note = tmp_path / "pid"
    finished = runner.run(python(code, str(note)))
    assert finished.exit_code == 0
    assert eventually(lambda: gone(int(note.read_text())))


PARENT = """
import sys, threading
from datetime import timedelta
from actions.shell import Command, Runner
from tests.patience import DEADLINE
runner = Runner()
command = Command(
    argv=(sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(1000)"),
    time_limit=timedelta(seconds=1000),
    environment={"PATH": "/usr/bin:/bin"},
)
started = []
asks = threading.Thread(target=lambda: started.append(runner.start(command)))
asks.start()
asks.join()
child = started[0]
assert child.stdout is not None
print(int(child.stdout.readline()), flush=True)
sys.stdin.readline()
print(child.poll(), flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def parent() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ROOT},
    )


def test_a_child_dies_when_the_bot_is_killed(parent: subprocess.Popen[str]) -> None:
    with parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert not gone(child)
        os.kill(parent.pid, signal.SIGKILL)
        assert eventually(lambda: gone(child))


def test_a_child_outlives_the_thread_that_asked_for_it(parent: subprocess.Popen[str]) -> None:
    with parent:
        assert parent.stdout is not None
        assert parent.stdin is not None
        child = int(parent.stdout.readline())
        parent.stdin.write("\n")
        parent.stdin.flush()
        assert parent.stdout.readline() == "None\n"
        assert not gone(child)
        os.kill(parent.pid, signal.SIGKILL)
        assert eventually(lambda: gone(child))


def test_a_runner_works_in_a_forked_process(runner: Runner) -> None:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, runner.run(python("print('forked')")).stdout.encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answers:
        assert answers.read() == "forked\n"
    os.waitpid(pid, 0)
