"""Starts programs on the node: argument lists, a whole environment, a time limit, a cap.

The only module of the node's program that does. A child that ignores SIGKILL (D state in a driver or
on a dead mount) is left behind with the lock that it inherited, so that the same reading is not
started again on top of it.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO

CAP = 1 << 20
_CHUNK = 1 << 16
_GRACE = 2.0
_BEAT = 0.1


@dataclass(frozen=True)
class Ended:
    """What became of a child."""

    code: int | None
    """None: not started, or ended by us."""
    out: bytes = b""
    err: bytes = b""
    why: str = ""
    """Why there is no code."""

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with code 0."""
        return self.code == 0

    def text(self) -> str:
        """What it printed."""
        return self.out.decode("utf-8", "backslashreplace")

    def said(self) -> str:
        """Why it failed, in a few words."""
        errors = self.err.decode("utf-8", "backslashreplace").strip() or self.text().strip()
        return self.why or errors[-300:] or f"exit code {self.code}"


@dataclass
class _Pipes:
    """The open outputs of a child and the end of each that fits."""

    cap: int
    kept: dict[int, bytearray] = field(default_factory=dict)
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def watch(self, stream: IO[bytes]) -> None:
        os.set_blocking(stream.fileno(), False)
        self.kept[stream.fileno()] = bytearray()
        self.selector.register(stream, selectors.EVENT_READ)

    def take(self, seconds: float) -> bool:
        """Read what is there; False when every output has ended."""
        for key, _ in self.selector.select(max(0.0, seconds)):
            data = os.read(key.fd, _CHUNK)
            if not data:
                self.selector.unregister(key.fileobj)
            kept = self.kept[key.fd]
            kept += data
            del kept[: max(0, len(kept) - self.cap)]
        return bool(self.selector.get_map())


def run(
    argv: list[str],
    environment: dict[str, str],
    limit: float,
    feed: bytes = b"",
    keep: tuple[int, ...] = (),
) -> Ended:
    """Run to the end or the limit. Of each output the last bytes are kept. `keep`: locks it inherits."""
    deadline = time.monotonic() + limit
    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE if feed else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd="/",
            start_new_session=True,
            pass_fds=keep,
        )
    except OSError as error:
        return Ended(code=None, why=f"{argv[0]}: {os.strerror(error.errno or 0)}")
    pipes = _Pipes(CAP)
    for stream in (child.stdout, child.stderr):
        if stream is not None:
            pipes.watch(stream)
    _feed(child, feed)
    _talk(child, pipes, deadline)
    for stream in (child.stdout, child.stderr):
        if stream is not None:
            stream.close()
    pipes.selector.close()
    why = _end(child, limit, argv[0])
    out, err = (bytes(kept) for kept in pipes.kept.values())
    code = child.returncode
    if not why and (code is None or code < 0):
        why, code = f"{argv[0]} was killed by signal {-(code or 0)}", None
    return Ended(code=None if why else code, out=out, err=err, why=why)


def _feed(child: subprocess.Popen[bytes], feed: bytes) -> None:
    if child.stdin is None:
        return
    with contextlib.suppress(OSError):
        child.stdin.write(feed)
    with contextlib.suppress(OSError):
        child.stdin.close()


def _talk(child: subprocess.Popen[bytes], pipes: _Pipes, deadline: float) -> None:
    """Until the child has ended and its outputs hold no more, or the deadline."""
    while time.monotonic() < deadline:
        more = pipes.take(min(_BEAT, deadline - time.monotonic()))
        if child.poll() is not None:
            while more and pipes.selector.select(0):
                more = pipes.take(0)
            return
        if not more:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(max(0.0, deadline - time.monotonic()))
            return


def _end(child: subprocess.Popen[bytes], limit: float, name: str) -> str:
    """Kill what is left of its group; why it has no code of its own, or empty text."""
    running = child.poll() is None
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    if not running:
        return ""
    try:
        child.wait(_GRACE)
    except subprocess.TimeoutExpired:
        return f"{name} is stuck: it did not end within {limit:g} s and ignores SIGKILL"
    return f"{name} did not end within {limit:g} s"


def as_user(identity: tuple[str, int, int], work: Callable[[], bytes], limit: float) -> Ended:
    """What `work` gives in a child that is this (name, uid, gid) for good, within the limit.

    The child shares every open lock, and holds it on if it cannot be ended.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reader)
            code = _become_and_work(identity, work, writer)
        finally:
            os._exit(code)
    os.close(writer)
    deadline = time.monotonic() + limit
    with os.fdopen(reader, "rb") as stream:
        pipes = _Pipes(8 * CAP)
        pipes.watch(stream)
        while time.monotonic() < deadline and pipes.take(deadline - time.monotonic()):
            pass
        (out,) = (bytes(kept) for kept in pipes.kept.values())
        pipes.selector.close()
    return _reaped(pid, out, limit, deadline)


def become(argv: list[str]) -> None:
    """Go on as that program. Raises OSError."""
    os.execv(argv[0], argv)  # noqa: S606  no shell is the point


def _become_and_work(identity: tuple[str, int, int], work: Callable[[], bytes], writer: int) -> int:
    name, user, group = identity
    os.setsid()
    os.chdir("/")
    os.initgroups(name, group)
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)
    if os.getresuid() != (user, user, user) or 0 in os.getgroups():
        return 70
    answer = memoryview(work())
    while answer:
        answer = answer[os.write(writer, answer) :]
    return 0


def _reaped(pid: int, out: bytes, limit: float, deadline: float) -> Ended:
    killed = False
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            break
        if time.monotonic() > deadline + _GRACE:
            return Ended(code=None, why="stuck: the reading ignores SIGKILL (a dead file system?)")
        if time.monotonic() > deadline and not killed:
            os.kill(pid, signal.SIGKILL)
            killed = True
        time.sleep(_BEAT / 10)
    if killed or os.WIFSIGNALED(status):
        return Ended(code=None, why=f"the reading did not end within {limit:g} s")
    return Ended(code=os.WEXITSTATUS(status), out=out)
