"""The only place of the product that starts processes; areas of `actions/` receive a `Runner`.

No shell is ever involved: a command is a list of arguments, and text from outside stays one
argument. A child gets exactly the environment it is given, its own session, and dies with the bot:
`setpriv --pdeathsig KILL` tells the kernel so. That signal follows the *thread* that started the
child, so one thread that lives as long as the process starts all of them (measured, design 5).

What this module must never do: report exit code 0 for a child whose end it has not seen, or hold
more of an output than the command's cap.
"""

import contextlib
import os
import queue
import selectors
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import IO

_CHUNK = 1 << 16
_MARGIN = 4096
"""Read beyond the cap and thrown away after redaction, so that no half of a secret is kept."""
_AFTER_EXIT = 1.0
"""Seconds for the pipes to close once the group was killed; a child that left the group may hold
them open for ever."""
_NO_NUL = "a command's arguments and environment must hold no NUL and be encodable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One program to run: arguments, limits, and its whole environment."""

    argv: tuple[str, ...]
    time_limit: timedelta
    environment: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    output_cap: int = 1 << 20
    """Bytes kept of each of the two outputs; what comes after is read and dropped."""

    def __post_init__(self) -> None:
        """Refuse what the kernel could not take as it stands."""
        if not self.argv or not self.argv[0]:
            raise ValueError("a command needs the name of a program")
        try:
            words = [os.fsencode(word) for pair in self.environment.items() for word in pair]
            words += [os.fsencode(word) for word in self.argv]
        except UnicodeEncodeError as error:
            raise ValueError(_NO_NUL) from error
        if any(b"\0" in word for word in words):
            raise ValueError(_NO_NUL)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFinished:
    """What became of a command. No exit code is not exit code 0."""

    exit_code: int | None
    """None when there is none to believe: time-out, killed by a signal, never started (`lost`)."""
    stdout: str = ""
    stderr: str = ""
    truncated: bool = False
    """One of the outputs passed the cap and was cut."""
    timed_out: bool = False
    lost: str = ""
    """Why there is no exit code."""
    started: bool = True
    """False: it certainly did nothing."""

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with code 0."""
        return self.exit_code == 0


def unredacted(text: str) -> str:
    """The redactor of a process that knows no secrets."""
    return text


def packages() -> str:
    """PYTHONPATH for a child that runs a module of ours: it finds what this process finds."""
    here = str(Path(__file__).parents[1])
    return os.pathsep.join([here, *(entry for entry in sys.path if entry)])


class NotStarted(Exception):
    """The program could not be started; nothing has happened."""


class Runner:
    """Starts programs and waits for them; one for the whole process, used from worker threads."""

    def __init__(self, redact: Callable[[str], str] = unredacted) -> None:
        """`redact` sees every output before anything else does."""
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            raise NotStarted(
                "no program named setpriv: install util-linux; without it a child could outlive the bot"
            )
        self._prefix = (setpriv, "--pdeathsig", "KILL", "--")
        self._redact = redact
        self._lock = threading.Lock()
        self._starter = _Starter()

    def run(self, command: Command) -> CommandFinished:
        """Run to the end or the time limit. Never raises for what the program does."""
        deadline = time.monotonic() + command.time_limit.total_seconds()
        try:
            child = self.start(command)
        except NotStarted as error:
            return CommandFinished(exit_code=None, lost=str(error), started=False)
        talk = _Talk(child, command)
        timed_out = talk.until(deadline)
        code = talk.end()
        return CommandFinished(
            exit_code=None if timed_out or code < 0 else code,
            stdout=self._text(talk.stdout),
            stderr=self._text(talk.stderr),
            truncated=talk.stdout.over or talk.stderr.over,
            timed_out=timed_out,
            lost=_why_lost(command, timed_out=timed_out, code=code),
        )

    def start(self, command: Command) -> subprocess.Popen[bytes]:
        """Start a program with three pipes and leave it to the caller, who must read and reap it.

        It dies with the bot like any other. Raises NotStarted.
        """
        path = command.environment.get("PATH", os.defpath)
        program = shutil.which(command.argv[0], path=path)
        if program is None:
            raise NotStarted(f"no program named {command.argv[0]!r} in {path}")
        argv = [*self._prefix, program, *command.argv[1:]]
        with self._lock:
            if not self._starter.alive:
                self._starter = _Starter()
            started = self._starter.ask(argv, dict(command.environment))
        try:
            return started.result()
        except OSError as error:
            raise NotStarted(f"{command.argv[0]} could not be started: {error}") from error

    def _text(self, output: "_Capped") -> str:
        text = self._redact(output.kept.decode("utf-8", errors="backslashreplace"))
        return text[:-_MARGIN] if output.over else text


class _Starter:
    """The one thread from which children are started; it never ends before the process does."""

    def __init__(self) -> None:
        self._asked: queue.SimpleQueue[
            tuple[list[str], dict[str, str], Future[subprocess.Popen[bytes]]]
        ] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="starter", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """False after a fork: only the forking thread lives on in the new process."""
        return self._thread.is_alive()

    def ask(self, argv: list[str], environment: dict[str, str]) -> Future[subprocess.Popen[bytes]]:
        """Have the thread start this program."""
        answer: Future[subprocess.Popen[bytes]] = Future()
        self._asked.put((argv, environment, answer))
        return answer

    def _serve(self) -> None:
        while True:
            argv, environment, answer = self._asked.get()
            try:
                answer.set_result(
                    subprocess.Popen(
                        argv,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE,
                        env=environment,
                        cwd="/",
                        start_new_session=True,
                    )
                )
            except Exception as error:  # noqa: BLE001  this thread's end would kill all children
                answer.set_exception(error)


class _Capped:
    """One output of a child, kept up to the cap and a margin."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self.kept = bytearray()
        self.over = False

    def add(self, data: bytes) -> None:
        """Keep what fits."""
        room = self._cap + _MARGIN - len(self.kept)
        self.kept += data[:room]
        if len(self.kept) > self._cap:
            self.over = True

    def close(self) -> None:
        """Bring a truncated output to exactly cap + margin, the length `_text` cuts from."""
        if self.over:
            self.kept += b" " * (self._cap + _MARGIN - len(self.kept))


class _Talk:
    """The exchange with one running child: feeds stdin, reads both outputs, sees the end."""

    def __init__(self, child: subprocess.Popen[bytes], command: Command) -> None:
        self._child = child
        self._unsent = memoryview(command.stdin)
        self.stdout = _Capped(command.output_cap)
        self.stderr = _Capped(command.output_cap)
        self._selector = selectors.DefaultSelector()
        self._exit = os.pidfd_open(child.pid)
        self._selector.register(self._exit, selectors.EVENT_READ, None)
        self._watch(child.stdout, self.stdout)
        self._watch(child.stderr, self.stderr)
        if child.stdin is not None:
            os.set_blocking(child.stdin.fileno(), False)
            self._selector.register(child.stdin, selectors.EVENT_WRITE, None)

    def _watch(self, stream: IO[bytes] | None, output: _Capped) -> None:
        if stream is not None:
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream, selectors.EVENT_READ, output)

    def until(self, deadline: float) -> bool:
        """Exchange until the child has ended; True when the deadline came first."""
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return True
            if self._step(left):
                return False

    def end(self) -> int:
        """Kill what is left of the group, read the rest, reap, and give the return code."""
        # The leader is not reaped yet, so its number still names this group and no other. An empty
        # group, or one whose members changed user: nothing more can be done.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._drain(time.monotonic() + _AFTER_EXIT)
        code = self._child.wait()
        self._selector.close()
        os.close(self._exit)
        for stream in (self._child.stdin, self._child.stdout, self._child.stderr):
            if stream is not None:
                _close(stream)
        self.stdout.close()
        self.stderr.close()
        return code

    def _drain(self, deadline: float) -> None:
        while (left := deadline - time.monotonic()) > 0 and any(
            isinstance(key.data, _Capped) for key in self._selector.get_map().values()
        ):
            self._step(left)

    def _step(self, timeout: float) -> bool:
        """Serve what is ready; True when the child has ended."""
        ended = False
        for key, _ in self._selector.select(timeout):
            if key.fileobj == self._exit:
                ended = True
            elif isinstance(key.data, _Capped):
                self._read(key.fd, key.data)
            else:
                self._write(key.fd)
        if ended and self._exit in self._selector.get_map():
            self._selector.unregister(self._exit)
        return ended

    def _read(self, descriptor: int, output: _Capped) -> None:
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return
        if data:
            output.add(data)
        else:
            self._selector.unregister(descriptor)

    def _write(self, descriptor: int) -> None:
        try:
            self._unsent = self._unsent[os.write(descriptor, self._unsent[:_CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._unsent = self._unsent[:0]
        if not self._unsent and self._child.stdin is not None:
            self._selector.unregister(descriptor)
            _close(self._child.stdin)


def _close(stream: IO[bytes]) -> None:
    """Close a pipe whose other end may be gone."""
    with contextlib.suppress(BrokenPipeError):
        stream.close()


def _why_lost(command: Command, *, timed_out: bool, code: int) -> str:
    """Why there is no exit code; empty when there is one."""
    if timed_out:
        return f"{command.argv[0]} did not end within {command.time_limit.total_seconds():g} s"
    if code < 0:
        return f"{command.argv[0]} was killed by {_signal_name(-code)}"
    return ""


def _signal_name(number: int) -> str:
    """The signal's name, or its number where it has none (real-time signals)."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
