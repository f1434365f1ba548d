"""A Redfish service on loopback, as far as a BMC has one, which can be told to misbehave."""

import base64
import http.server
import json
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.patience import DEADLINE

OPENSSL = shutil.which("openssl")
PASSWORD = "canary-bmc-7f3a"
USER = "nodewarden"
SYSTEM = "/redfish/v1/Systems/1"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
LETS_IN = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


@dataclass(slots=True)
class FakeBmc:
    """What the machine is, what was asked of it, and how it answers."""

    power: str = "On"
    resets: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    host: str = ""
    offered: tuple[str, ...] = ("On", "ForceOff", "ForceRestart", "GracefulShutdown", "PowerCycle")
    says: list[str] = field(default_factory=list)
    """Power states that the next readings say, whatever is so."""
    status: int = 204
    """Of the answer to a reset."""
    words: bytes = b""
    deaf: bool = False
    """A reset is accepted and does nothing."""
    systems: tuple[str, ...] = (SYSTEM,)
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    """What a path answers instead."""
    headers: dict[str, str] = field(default_factory=dict)
    silent_on: str = ""
    """A path to which no answer comes until the test is over."""
    over: threading.Event = field(default_factory=threading.Event)
    entries: list[dict[str, str]] = field(default_factory=list)

    def page(self, path: str) -> Any:
        """What a GET of this path finds."""
        match path:
            case "/redfish/v1/Systems":
                return {"Members": [{"@odata.id": system} for system in self.systems]}
            case "/redfish/v1/Systems/1":
                return {
                    "PowerState": self.says.pop(0) if self.says else self.power,
                    "HostName": "gpu-01",
                    "SerialNumber": "S1",
                    "Actions": {
                        "#ComputerSystem.Reset": {
                            "target": RESET,
                            "ResetType@Redfish.AllowableValues": list(self.offered),
                        }
                    },
                    "LogServices": {"@odata.id": f"{SYSTEM}/LogServices"},
                }
            case "/redfish/v1/Systems/1/LogServices":
                paths = (f"{SYSTEM}/LogServices/Dreadful", f"{SYSTEM}/LogServices/Sel")
                return {"Members": [{"@odata.id": found} for found in paths]}
            case "/redfish/v1/Systems/1/LogServices/Sel":
                return {"Entries": {"@odata.id": f"{path}/Entries"}}
            case "/redfish/v1/Systems/1/LogServices/Sel/Entries":
                return {"Members": self.entries}
        return None

    def reset(self, kind: str) -> None:
        """Do as a machine does."""
        self.resets.append(kind)
        if not self.deaf:
            self.power = "Off" if kind == "ForceOff" else "On"


@contextmanager
def served(bmc: FakeBmc, certificate: tuple[Path, Path]) -> Iterator[FakeBmc]:
    """The service, over TLS, at a free port of loopback."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(json.loads(raw))

        def _answer(self, sent: dict[str, str] | None) -> None:
            bmc.asked.append(f"{self.command} {self.path}")
            if bmc.silent_on == self.path:
                bmc.over.wait(DEADLINE)
                return
            status, body = self._found(sent)
            self.send_response(status)
            for name, value in bmc.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _found(self, sent: dict[str, str] | None) -> tuple[int, bytes]:
            if self.headers["Authorization"] != LETS_IN:
                return 401, b"who are you"
            if self.path in bmc.answers:
                return bmc.answers[self.path]
            if sent is not None:
                if bmc.status < 300 or bmc.status >= 500:
                    bmc.reset(sent["ResetType"])
                return bmc.status, bmc.words
            page = bmc.page(self.path)
            return (404, b"") if page is None else (200, json.dumps(page).encode())

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A caller that turns away is what these tests are about."""

    server = Server(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    bmc.host = f"127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield bmc
    finally:
        bmc.over.set()
        server.shutdown()
        thread.join()
        server.server_close()


def make_certificates(folder: Path) -> tuple[Path, tuple[Path, Path]]:
    """A CA of this test alone, and a certificate for 127.0.0.1 that it signed."""
    ca_key, ca = folder / "ca.key", folder / "ca.pem"
    key, request, signed = folder / "bmc.key", folder / "bmc.csr", folder / "bmc.pem"
    names = folder / "names"
    names.write_text("subjectAltName=IP:127.0.0.1\n")
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    _openssl("req", "-x509", *new, "-days", "1", "-subj", "/CN=test", "-keyout", ca_key, "-out", ca)
    _openssl("req", *new, "-subj", "/CN=bmc", "-keyout", key, "-out", request)
    _openssl(
        *("x509", "-req", "-in", request, "-CA", ca, "-CAkey", ca_key, "-CAcreateserial"),
        *("-days", "1", "-extfile", names, "-out", signed),
    )
    return ca, (signed, key)


def _openssl(*words: object) -> None:
    subprocess.run([str(OPENSSL), *map(str, words)], check=True, capture_output=True)
