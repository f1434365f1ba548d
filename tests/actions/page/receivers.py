"""Receivers on loopback that answer as badly as real ones do, and the clock and pages of the tests."""

import http.server
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from actions.hands import Page
from actions.page.backends import Accepted, MaybeAccepted, NotAccepted
from config.clock import Instant
from config.secret_store import SecretStore
from config.system_clock import SystemClock
from tests.patience import DEADLINE

NOW = datetime(2026, 3, 2, 2, 0, tzinfo=UTC)
CLOCK = SystemClock()
LIMIT = timedelta(seconds=DEADLINE)
CANARY = "canary-token-7f3a"
SECRETS = SecretStore({"PAGE_TOKEN": CANARY, "BAD_TOKEN": "a\nX-Evil: 1"})
PAGE = Page(
    key="nodewarden/abcd0123/run-7",
    summary="run-7 node-dropped gpu-017: a person must decide",
    details={"run": "run-7", "job name": "a<!channel>&`id`", "cluster": "sim"},
)


class StandingClock:
    """Wall time stands, monotonic time goes."""

    def now(self) -> Instant:
        return Instant(wall=NOW, monotonic=CLOCK.now().monotonic)


@dataclass(slots=True)
class Receiver:
    """What was posted, and what will be answered."""

    url: str = ""
    posts: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


@contextmanager
def receiver(
    status: int = 200,
    body: bytes = b"",
    headers: dict[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> Iterator[Receiver]:
    """An HTTP server that always answers this."""
    seen = Receiver()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            seen.posts.append(json.loads(raw))
            seen.headers.append(dict(self.headers.items()))
            seen.paths.append(self.path)
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:
                self.close_connection = True

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A caller that turns away is what these tests are about."""

    server = Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    seen.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def raw_receiver(said: bytes, hangs: bool) -> Iterator[str]:
    """A server that reads a request, says these bytes, and then hangs or closes."""
    listener = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                if over.is_set():
                    return
                connection.recv(1 << 16)
                connection.sendall(said)
                if hangs:
                    over.wait(DEADLINE)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        over.set()
        with socket.create_connection(listener.getsockname()):
            pass
        thread.join()
        listener.close()


def closed_port() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


@dataclass(slots=True)
class Fake:
    """A back end that does as it is told."""

    name: str
    outcome: Accepted | Exception
    pages: list[Page] = field(default_factory=list)
    limits: list[timedelta] = field(default_factory=list)

    def page(self, page: Page, limit: timedelta) -> Accepted:
        self.pages.append(page)
        self.limits.append(limit)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


YES = Accepted(detail="taken over")
NO = NotAccepted("HTTP 500")
MAYBE = MaybeAccepted("no answer within the time limit")
