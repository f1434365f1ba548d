"""Process 1 of one virtual machine of the testbed: a very small stand-in for systemd.

Started by `unshare --mount --uts --pid --fork` with one JSON file as its argument, by path and
with the standard library only. It keeps named units (slurmd, sshd, munged, ...), reaps what they
leave behind, and answers one JSON line per connection on its socket. Because it is process 1 of
its own PID namespace, its death ends every process of the virtual machine, daemonised or not:
tear-down needs one kill, and a reboot is one `kill(-1)`.

Root may ask everything, everybody else what a unit's state is, as with systemd.
It must never run a command line that came through the socket.
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

Json = dict[str, Any]

_MS_BIND = 4096
_OPEN_FILES = 8192
_CLEAN_SIGNALS = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE})
"""systemd calls an end by one of these a success."""
_STOP_SECONDS = 20.0
_ASK_SECONDS = 2.0
_DARK_SECONDS = 2.0
"""slurmctld compares boot time and last answer in whole seconds: a faster reboot goes unnoticed."""
_PID_LIMIT = Path("/proc/sys/kernel/pid_max")
_LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
_LOWEST_PID_LIMIT = 301
_OWN_PID_LIMIT = (6, 14)
"""The first kernel in which each PID namespace has a limit of its own."""
_LIBC = ctypes.CDLL(None, use_errno=True)


def _mount(source: str, target: str, kind: str | None, flags: int) -> None:
    words = (source.encode(), target.encode(), kind.encode() if kind else None)
    if _LIBC.mount(*words, flags, None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"mount {source} on {target}: {os.strerror(number)}")


def _microseconds() -> int:
    return time.time_ns() // 1000


class Unit:
    """One service: how it is started, and what systemd would say about it."""

    def __init__(self, name: str, spec: Json) -> None:
        self.name = name
        self.spec = spec
        self.pid = 0
        self.state = "inactive"
        self.sub = "dead"
        self.result = "success"
        self.exit_status = 0
        self.active_since = 0
        self.inactive_since = 0
        self.stopping = False

    def start(self, more: list[str]) -> None:
        """Start the process unless it runs."""
        if self.pid:
            return
        spec = self.spec
        with Path(spec["log"]).open("ab") as log:
            process = subprocess.Popen(
                [*spec["argv"], *more],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=spec["env"],
                start_new_session=True,
                user=spec.get("user"),
                group=spec.get("group"),
                extra_groups=[] if spec.get("user") else None,
            )
        process.returncode = 0  # reaped by `Machine.reap`, not by the Popen object
        self.pid = process.pid
        self.state, self.sub, self.result, self.exit_status = "active", "running", "success", 0
        self.active_since = _microseconds()
        self.stopping = False

    def ended(self, status: int) -> None:
        """Take over the wait status as systemd does."""
        self.pid = 0
        code = os.waitstatus_to_exitcode(status)
        clean = code == 0 or self.stopping or -code in _CLEAN_SIGNALS
        self.exit_status = abs(code)
        self.result = "success" if clean else "signal" if code < 0 else "exit-code"
        self.state, self.sub = ("inactive", "dead") if clean else ("failed", "failed")
        self.inactive_since = _microseconds()

    def facts(self) -> Json:
        """What the systemctl shim prints."""
        return {
            "unit": self.name,
            "state": self.state,
            "sub": self.sub,
            "pid": self.pid,
            "result": self.result,
            "exit_status": self.exit_status,
            "active_since": self.active_since,
            "inactive_since": self.inactive_since,
            "argv": self.spec["argv"],
        }


class Machine:
    """The virtual machine: its mounts, its units, its socket."""

    def __init__(self, spec: Json) -> None:
        self.spec = spec
        self.units = {name: Unit(name, unit) for name, unit in spec["units"].items()}
        self.fillers: list[int] = []
        self.pids = b""
        """The limit of process numbers before `fill_pids`."""
        self.dark_since = 0.0
        """When the power went, by the monotonic clock; 0 while it is there."""

    def start_first(self) -> None:
        """Start the units that do not wait for a question."""
        for name in self.spec["autostart"]:
            self.units[name].start([])

    def _boot(self) -> None:
        """All units, as after a power-on."""
        for name, unit in self.units.items():
            unit.start(self.spec["boot_arguments"].get(name, []))

    def prepare(self) -> None:
        """Host name, private folders and bind mounts; all end with this process."""
        resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES))
        if self.spec.get("hostname"):
            socket.sethostname(self.spec["hostname"])
        for folder in self.spec.get("private", []):
            _mount("tmpfs", folder, "tmpfs", 0)
        for folder in self.spec.get("folders", []):
            Path(folder).mkdir(mode=0o755, parents=True, exist_ok=True)
        for source, target in self.spec.get("binds", []):
            _mount(source, target, None, _MS_BIND)

    def serve(self) -> None:
        """Answer until killed."""
        path = Path(self.spec["socket"])
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(path))
            path.chmod(0o666)  # every caller is checked by its credentials
            listener.listen(64)
            child_ended = _wake_on_child()
            while True:
                self.reap()
                ready, _, _ = select.select([listener, child_ended], [], [])
                if child_ended in ready:
                    child_ended.recv(4096)
                if listener in ready:
                    connection, _ = listener.accept()
                    self.reap()
                    with connection:
                        self._answer(connection)

    def reap(self) -> None:
        """Collect every process that has ended, ours or orphaned."""
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                for unit in self.units.values():
                    if unit.pid == found[0]:
                        unit.ended(found[1])

    def _answer(self, connection: socket.socket) -> None:
        connection.settimeout(_ASK_SECONDS)
        try:
            with connection.makefile("rb") as stream:
                asked = json.loads(stream.readline(65536))
            reply = self._do(asked, _peer(connection))
        except (OSError, ValueError, KeyError) as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        with contextlib.suppress(OSError):
            connection.sendall(json.dumps(reply).encode() + b"\n")

    def _do(self, asked: Json, user: int) -> Json:
        verb, name = asked["verb"], asked.get("unit", "")
        if user != 0 and verb != "show":
            return {"error": "Access denied", "code": 4}
        if name and name not in self.units:
            return {"error": f"Unit {name}.service not found.", "code": 5}
        if name:
            return self._unit_verb(verb, self.units[name], asked)
        return self._machine_verb(verb)

    def _unit_verb(self, verb: str, unit: Unit, asked: Json) -> Json:
        if verb in {"stop", "restart"}:
            self._stop(unit)
        if verb in {"start", "restart"}:
            unit.start([])
        if verb == "signal" and unit.pid:
            os.kill(unit.pid, int(asked["signal"]))
        return unit.facts()

    def _stop(self, unit: Unit) -> None:
        """SIGTERM to the main process alone (KillMode=process), then SIGKILL."""
        end = time.monotonic() + _STOP_SECONDS
        unit.stopping = True
        sent = 0
        while unit.pid:
            wanted = signal.SIGTERM if time.monotonic() < end else signal.SIGKILL
            if wanted != sent:
                os.kill(unit.pid, wanted)
                sent = wanted
            time.sleep(0.01)
            self.reap()
        unit.state, unit.sub, unit.result = "inactive", "dead", "success"

    def _machine_verb(self, verb: str) -> Json:
        if verb == "power":
            return {"power": "off" if self.dark_since else "on"}
        if verb == "fill_pids":
            self._fill_pids()
        if verb in {"free_pids", "power_off", "reboot"}:
            self._free_pids()
        if verb in {"power_off", "reboot"}:
            self._power_off()
        if verb in {"power_on", "reboot"} and self.dark_since:
            self._power_on()
        return {name: unit.facts() for name, unit in self.units.items()}

    def _power_off(self) -> None:
        self._cable("down")  # first: a machine without power takes leave of nobody
        self._end_all()
        self.dark_since = self.dark_since or time.monotonic()

    def _power_on(self) -> None:
        time.sleep(max(0.0, self.dark_since + _DARK_SECONDS - time.monotonic()))
        self._new_boot()
        self._cable("up")
        self._boot()
        self.dark_since = 0.0

    def _fill_pids(self) -> None:
        """Lower the namespace's own limit, and take what it leaves: numbers from 300 up to it."""
        if _kernel() < _OWN_PID_LIMIT:
            raise OSError("a kernel before 6.14 has one limit of process numbers for all")
        _insist_on_own_namespace()
        self.pids = self.pids or _PID_LIMIT.read_bytes()
        _LAST_PID.write_bytes(b"%d" % (_LOWEST_PID_LIMIT + 1))
        _PID_LIMIT.write_bytes(b"%d" % _LOWEST_PID_LIMIT)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.fillers.append(os.posix_spawn("/bin/sleep", ["sleep", "infinity"], {}))

    def _free_pids(self) -> None:
        if self.pids:
            _PID_LIMIT.write_bytes(self.pids)
        for pid in self.fillers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.fillers, self.pids = [], b""

    def _end_all(self) -> None:
        """Every process of this namespace but this one, as at a loss of power."""
        _insist_on_own_namespace()  # outside of one, kill(-1) by root would end the whole host
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        while any(unit.pid for unit in self.units.values()):
            time.sleep(0.01)
            self.reap()

    def _cable(self, state: str) -> None:
        subprocess.run(self.spec["cable"][state], check=True, env={})

    def _new_boot(self) -> None:
        """In place, because a bind mount shows the file and not its name."""
        Path(self.spec["boot_id"]).write_text(f"{uuid.uuid4()}\n", encoding="ascii")
        log = Path(self.spec["kernel_log"])
        Path(self.spec["previous_kernel_log"]).write_bytes(log.read_bytes())
        log.write_bytes(b"")


def _wake_on_child() -> socket.socket:
    """A socket that becomes readable at each SIGCHLD."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.detach(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler nothing is written
    return reader


def _peer(connection: socket.socket) -> int:
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", connection.getsockopt(1, socket.SO_PEERCRED, size))
    return int(user)


def _kernel() -> tuple[int, int]:
    major, minor = os.uname().release.split(".")[:2]
    return int(major), int(minor)


def _insist_on_own_namespace() -> None:
    """Only process 1 of a PID namespace plays a machine."""
    if os.getpid() != 1:
        sys.exit("supervisor.py is not process 1 of a PID namespace: SlurmTestbed starts it in one")


def main(path: str) -> None:
    """Run the machine that the file describes."""
    _insist_on_own_namespace()
    machine = Machine(json.loads(Path(path).read_text(encoding="utf-8")))
    machine.prepare()
    machine.start_first()
    machine.serve()


if __name__ == "__main__":
    main(sys.argv[1])
