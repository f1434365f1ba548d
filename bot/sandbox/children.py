"""Programs that the sandbox keeps running beside itself: the bot, the simulated cluster.

They are started by `actions.shell`, so the kernel ends them should this process be killed.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import IO

from actions.shell import Command, NotStarted, Runner
from bot.sandbox.playground import SandboxError, log_tail
from bot.sandbox.waiting import wait_for

PATIENCE = 60.0
"""Seconds in which a program must have ended after SIGTERM."""


class Child:
    """One program; what it prints goes to a log."""

    def __init__(
        self,
        runner: Runner,
        name: str,
        argv: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
    ) -> None:
        """Start it. Raises SandboxError."""
        self.log = log
        self._name = name
        command = Command(argv=tuple(argv), environment=environment, time_limit=timedelta(days=1))
        try:
            self._process = runner.start(command)
        except NotStarted as problem:
            raise SandboxError(str(problem)) from problem
        self._file = log.open("ab")
        self._writing = threading.Lock()
        streams = (self._process.stdout, self._process.stderr)
        self._readers = [
            threading.Thread(target=self._copy, args=(stream,), daemon=True) for stream in streams
        ]
        for reader in self._readers:
            reader.start()

    def check(self) -> None:
        """Raise SandboxError when it has ended by itself."""
        code = self._process.poll()
        if code is not None:
            raise SandboxError(
                f"{self._name} ended with code {code}; the end of {self.log}:\n{log_tail(self.log)}"
            )

    def stop(self) -> None:
        """Ask it to end, wait, and kill it when it does not."""
        if self._process.poll() is None:
            self._signal(signal.SIGTERM)
        try:
            wait_for(lambda: self._process.poll() is not None, f"{self._name} to end", PATIENCE)
        except SandboxError:
            self._signal(signal.SIGKILL)
            self._process.wait()
        for reader in self._readers:
            reader.join(PATIENCE)
        self._file.close()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, number)

    def _copy(self, stream: IO[bytes] | None) -> None:
        while stream is not None and (piece := os.read(stream.fileno(), 1 << 16)):
            with self._writing:
                self._file.write(piece)
                self._file.flush()
