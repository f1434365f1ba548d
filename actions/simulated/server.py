"""The simulated cluster behind a Unix socket, so that it lives on when the bot is killed.

Started by the sandbox and the tests in a thread, or as `python -m actions.simulated.server`.
One thread serves everybody, one request after another: the order of effects is the order of the list.
"""

import contextlib
import os
import selectors
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from actions.contract import (
    Refusal,
    Rejected,
    UnknownJob,
    UnknownNode,
    Unreadable,
    WriteUnknown,
)
from actions.simulated import wire
from actions.simulated.stage import Stage
from actions.simulated.wire import Request
from actions.simulated.writes import NoAnswer

_CREDENTIALS = struct.Struct("3i")
_CHUNK = 1 << 16

_ANSWERED = (Unreadable, Rejected, UnknownNode, UnknownJob, Refusal, WriteUnknown, ValueError)

Watch = Callable[[str, Request, int], None]
"""Told `before` and `after` each request, with the caller's process id; tests kill the caller here."""


@dataclass(slots=True)
class _Peer:
    """One connection: its request so far, and what is left of the answer."""

    connection: socket.socket
    pid: int
    received: bytearray
    pending: bytes = b""


class SimulationServer:
    """Serves one stage at one path; use as a context manager, or `serve` in the main thread."""

    def __init__(self, stage: Stage, path: Path, watch: Watch | None = None) -> None:
        """Listen at `path`, which must not exist; readable by this user only."""
        self.path = path
        self._stage = stage
        self._watch = watch
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self._listener.bind(str(path))
        path.chmod(0o600)
        self._listener.listen(128)
        self._listener.setblocking(False)
        self._wake, self._woken = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self.serve, name="simulated-cluster", daemon=True)
        self.lock = threading.Lock()
        """Held while a request is served; a test in the same process takes it to look inside."""

    def __enter__(self) -> Self:
        """Serve in a thread."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop serving and take the socket away."""
        self.stop()
        self._thread.join()

    def stop(self) -> None:
        """Let `serve` end; may be called from a signal handler."""
        with contextlib.suppress(OSError):
            self._wake.send(b"x")

    def serve(self) -> None:
        """Answer until `stop`."""
        try:
            while self._turn():
                pass
        finally:
            for key in tuple(self._selector.get_map().values()):
                if isinstance(key.data, _Peer):
                    key.data.connection.close()
            self._selector.close()
            for each in (self._listener, self._wake, self._woken):
                each.close()
            self.path.unlink(missing_ok=True)

    def _turn(self) -> bool:
        """Serve what is ready; False when it is time to stop."""
        for key, _ in self._selector.select():
            if key.fileobj is self._woken:
                return False
            if key.fileobj is self._listener:
                self._accept()
            else:
                self._advance(key.data)
        return True

    def _accept(self) -> None:
        """A new caller; the kernel says which process it is."""
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return
        connection.setblocking(False)
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        peer = _Peer(connection, _CREDENTIALS.unpack(raw)[0], bytearray())
        self._selector.register(connection, selectors.EVENT_READ, peer)
        # A caller writes right after it connects: its line is mostly there already.
        self._advance(peer)

    def _advance(self, peer: _Peer) -> None:
        """Read on, or write on, whatever this connection is at."""
        try:
            if peer.pending:
                self._send(peer)
                return
            chunk = peer.connection.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._close(peer)
            return
        peer.received += chunk
        if peer.received.endswith(b"\n"):
            self._serve(peer)
        elif len(peer.received) > wire.LARGEST_REQUEST:
            self._close(peer)

    def _serve(self, peer: _Peer) -> None:
        """Answer one whole request."""
        try:
            request = wire.decode_request(bytes(peer.received))
            self._tell("before", request, peer.pid)
            with self.lock:
                peer.pending = wire.encode_answer(self._stage.answer(request, peer.pid))
            self._tell("after", request, peer.pid)
        except NoAnswer as silence:
            # A held connection stays until its caller gives up, dies, or the server ends.
            if not silence.holds:
                self._close(peer)
            return
        except _ANSWERED as error:
            peer.pending = wire.encode_error(error)
        except Exception as error:  # noqa: BLE001  one bad request must not end everybody's cluster
            peer.pending = wire.encode_error(ValueError(f"request not understood: {error!a}"))
        self._send(peer)

    def _tell(self, moment: str, request: Request, pid: int) -> None:
        """Tell the watch, if there is one."""
        if self._watch is not None:
            self._watch(moment, request, pid)

    def _send(self, peer: _Peer) -> None:
        """Send what the socket takes now; the rest when it takes more."""
        try:
            sent = peer.connection.send(peer.pending)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._close(peer)
            return
        peer.pending = peer.pending[sent:]
        if peer.pending:
            self._selector.modify(peer.connection, selectors.EVENT_WRITE, peer)
        else:
            self._close(peer)

    def _close(self, peer: _Peer) -> None:
        """One connection carries one request.

        Shut down, not only closed: a process forked meanwhile holds a copy of the descriptor, and
        the caller would wait for an end that does not come.
        """
        self._selector.unregister(peer.connection)
        with contextlib.suppress(OSError):
            peer.connection.shutdown(socket.SHUT_RDWR)
        peer.connection.close()


def serve_until_terminated(stage: Stage, path: Path) -> None:
    """Serve in this process until SIGTERM or SIGINT; says on standard output where it listens."""
    server = SimulationServer(stage, path)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.stop())
    sys.stdout.write(
        f"simulated cluster {stage.world.state.settings.cluster} at {path}"
        f" (process {os.getpid()})\n"
    )
    sys.stdout.flush()
    server.serve()
