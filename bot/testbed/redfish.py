"""BMCs of the virtual nodes: one small Redfish service per node, over TLS, with faults.

Started by the sandbox and by tests beside a testbed; whatever has the four methods of `Switch` can be
behind it. Each BMC has a loopback address of its own, with the node's number at its end, and all of
them the same port, so that one line of configuration names them all. It listens nowhere else.
"""

import base64
import hmac
import json
import ssl
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, cast

from bot.testbed import redfish_pages as pages
from bot.testbed.commands import environment, run
from bot.testbed.options import TestbedError
from bot.testbed.requirements import program

_LARGEST_BODY = 65_536
_SILENT_SECONDS = 60.0
Json = dict[str, Any]


class Switch(Protocol):
    """The power of machines; `SlurmTestbed` is one."""

    def power(self, node: str) -> str:
        """`on` or `off`."""
        ...

    def power_off(self, node: str) -> None:
        """At once."""
        ...

    def power_on(self, node: str) -> None:
        """A boot."""
        ...

    def reboot(self, node: str) -> None:
        """Off and on."""
        ...


class BmcFault(StrEnum):
    """What can be wrong with a BMC."""

    NONE = "none"
    LIES = "lies"
    """It says Off of a machine that runs, and On of one that does not."""
    IDLE = "idle"
    """It accepts a reset and does nothing."""
    SILENT = "silent"
    """It reads the request and never answers, nor does it do anything."""
    ANSWER_LOST = "answer_lost"
    """It does what was asked and hangs up without an answer."""
    BROKEN = "broken"
    """It answers HTTP 500 and does nothing."""
    MOVED = "moved"
    """It redirects to another host."""


@dataclass(slots=True)
class Bmc:
    """One BMC: what is wrong with it, what its log holds, what it was asked."""

    node: str
    address: str
    fault: BmcFault = BmcFault.NONE
    log: list[tuple[str, str]] = field(default_factory=list)
    """Severity and message of each event."""
    resets: list[str] = field(default_factory=list)
    """ResetType of each reset that was asked for and let in, also those without effect."""


class BmcRack:
    """The BMCs of these nodes, a context manager. Raises TestbedError without `openssl`."""

    user = "nodewarden"
    password = "only-in-the-testbed"  # noqa: S105 - of nothing that exists elsewhere

    def __init__(self, switch: Switch, nodes: Sequence[str], folder: Path) -> None:
        """`folder` takes the key and the certificate; nothing listens before `start`."""
        self._switch = switch
        self._places = {node: f"127.78.87.{number}" for number, node in enumerate(nodes, start=1)}
        self._folder = folder
        self._closing = ExitStack()
        self._ended = threading.Event()
        self.bmcs: dict[str, Bmc] = {}

    @property
    def ca_file(self) -> Path:
        """The certificate to trust."""
        return self._folder / "bmc.pem"

    @property
    def address_template(self) -> str:
        """For `power.bmc[].address` of the configuration, where names end in 01 and on."""
        return "127.78.87.{number}:" + self._port

    @property
    def _port(self) -> str:
        return next(iter(self.bmcs.values())).address.rpartition(":")[2]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when all of them listen."""
        context = _context(self.ca_file, list(self._places.values()))
        port = 0
        try:
            for node, place in self._places.items():
                server = _server(self, node, (place, port), context)
                port = server.server_address[1]
                self.bmcs[node] = Bmc(node=node, address=f"{place}:{port}")
                self._closing.callback(_end, server)
                threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Close all of them; requests that hang end."""
        self._ended.set()
        self._closing.close()

    def answer(self, node: str, method: str, path: str, body: bytes) -> tuple[HTTPStatus, Json]:
        """What this BMC says, after it did what was asked. Raises ConnectionAbortedError."""
        bmc = self.bmcs[node]
        match bmc.fault:
            case BmcFault.SILENT:
                self._ended.wait(_SILENT_SECONDS)
                raise ConnectionAbortedError
            case BmcFault.BROKEN:
                return HTTPStatus.INTERNAL_SERVER_ERROR, pages.problem("the BMC is out of memory")
            case BmcFault.MOVED:
                return HTTPStatus.TEMPORARY_REDIRECT, pages.problem("moved")
            case _:
                return self._sound(bmc, method, path, body)

    def _sound(self, bmc: Bmc, method: str, path: str, body: bytes) -> tuple[HTTPStatus, Json]:
        if method == "POST":
            found = self._reset(bmc, path, body)
            if bmc.fault is BmcFault.ANSWER_LOST:
                raise ConnectionAbortedError
            return found
        power = self._switch.power(bmc.node)
        if bmc.fault is BmcFault.LIES:
            power = "off" if power == "on" else "on"
        found_page = pages.page(path, bmc.node, power, bmc.log)
        if found_page is None:
            return HTTPStatus.NOT_FOUND, pages.problem(f"no resource at {path[:200]}")
        return HTTPStatus.OK, found_page

    def _reset(self, bmc: Bmc, path: str, body: bytes) -> tuple[HTTPStatus, Json]:
        kind = pages.reset_type(path, body)
        verb = self._verbs().get(kind)
        if verb is None:
            return HTTPStatus.BAD_REQUEST, pages.problem("ResetType is not one of those offered")
        bmc.resets.append(kind)
        if bmc.fault is BmcFault.IDLE or kind == self._needless(bmc.node):
            return HTTPStatus.NO_CONTENT, {}
        verb(bmc.node)
        return HTTPStatus.NO_CONTENT, {}

    def _verbs(self) -> dict[str, Callable[[str], None]]:
        switch = self._switch
        verbs = (switch.power_on, switch.power_off, switch.reboot, switch.reboot)
        return dict(zip(pages.RESET_TYPES, verbs, strict=True))

    def _needless(self, node: str) -> str:
        """The reset that would change nothing: a running machine does not boot at "On"."""
        return "On" if self._switch.power(node) == "on" else "ForceOff"


class _Handler(BaseHTTPRequestHandler):
    """One request to one BMC."""

    protocol_version = "HTTP/1.1"
    rack: BmcRack
    node: str

    def do_GET(self) -> None:
        """Read."""
        self._serve(b"")

    def do_POST(self) -> None:
        """Act."""
        size = int(self.headers.get("Content-Length") or 0)
        self._serve(self.rfile.read(min(size, _LARGEST_BODY)))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as inherited
        """Say nothing."""

    def _serve(self, body: bytes) -> None:
        if not self._let_in():
            self._send(HTTPStatus.UNAUTHORIZED, pages.problem("wrong user or password"))
            return
        try:
            status, value = self.rack.answer(self.node, self.command, self.path, body)
        except ConnectionAbortedError:
            self.close_connection = True
            return
        except TestbedError as error:
            status, value = HTTPStatus.INTERNAL_SERVER_ERROR, pages.problem(str(error))
        self._send(status, value)

    def _let_in(self) -> bool:
        words = f"{self.rack.user}:{self.rack.password}".encode()
        wanted = f"Basic {base64.b64encode(words).decode()}"
        return hmac.compare_digest(self.headers.get("Authorization", "").encode(), wanted.encode())

    def _send(self, status: HTTPStatus, value: Json) -> None:
        body = json.dumps(value).encode() if value else b""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if status is HTTPStatus.TEMPORARY_REDIRECT:
            self.send_header("Location", f"https://bmc.invalid{pages.SYSTEM}")
        self.end_headers()
        self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    """Does the TLS handshake in the request's own thread, so that a slow client stops no other."""

    daemon_threads = True
    context: ssl.SSLContext

    def finish_request(self, request: Any, client_address: Any) -> None:
        """As inherited, over TLS. A client that does not trust the certificate hangs up."""
        try:
            with self.context.wrap_socket(request, server_side=True) as stream:
                super().finish_request(cast("Any", stream), client_address)
        except OSError:
            return


def _server(
    rack: BmcRack, node: str, place: tuple[str, int], context: ssl.SSLContext
) -> ThreadingHTTPServer:
    server = _Server(place, type("Handler", (_Handler,), {"rack": rack, "node": node}))
    server.context = context
    return server


def _end(server: ThreadingHTTPServer) -> None:
    server.shutdown()
    server.server_close()


def _context(certificate: Path, addresses: Sequence[str]) -> ssl.SSLContext:
    """TLS with a new key, certified for these addresses by itself."""
    if not program("openssl"):
        raise TestbedError("the BMCs of the testbed need: apt-get install openssl")
    key = certificate.with_suffix(".key")
    names = ",".join(f"IP:{address}" for address in addresses)
    argv = ["openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=testbed BMCs"]
    argv += ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    argv += ["-addext", f"subjectAltName={names}", "-keyout", str(key), "-out", str(certificate)]
    run(argv, environment(Path("/dev/null")))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
