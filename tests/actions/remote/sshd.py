"""A real sshd on loopback, and the ssh configuration with which the bot reaches it."""

import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.patience import DEADLINE

SSHD = "/usr/sbin/sshd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One sshd, its files, and the folder whose programs come first in its PATH."""

    port: int
    folder: Path
    programs: Path
    key: Path

    def program(self, name: str, script: str) -> None:
        """Put a program on the node."""
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def ssh_config(self, name: str, ports: dict[str, int], *, key: Path | None = None) -> Path:
        """A configuration in which each node name leads to a port on loopback."""
        path = self.folder / name
        lines = [
            f"Host *\n  User root\n  HostName 127.0.0.1\n  IdentityFile {key or self.key}\n"
            f"  IdentitiesOnly yes\n  HostKeyAlias node\n"
            f"  UserKnownHostsFile {self.folder / 'known_hosts'}\n  GlobalKnownHostsFile none\n"
        ]
        hosts = [f"Host {node}\n  Port {port}\n" for node, port in ports.items()]
        path.write_text("".join([*hosts, *lines]))
        return path


def make_key(path: Path) -> Path:
    """A key pair without passphrase."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path


def known_hosts(folder: Path, public: Path) -> None:
    """Trust this host key under the alias that every node of the test has."""
    kind, key, *_ = public.read_text().split()
    (folder / "known_hosts").write_text(f"node {kind} {key}\n")


def free_port() -> int:
    """A port on which nothing listens at the moment; sshd cannot choose one by itself."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def running_sshd(folder: Path) -> Iterator[Host]:
    """An sshd until the end of the block."""
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    key, host_key, port = make_key(folder / "key"), make_key(folder / "host_key"), free_port()
    programs = folder / "programs"
    programs.mkdir()
    shutil.copy(folder / "key.pub", folder / "authorized_keys")
    known_hosts(folder, folder / "host_key.pub")
    config = folder / "sshd_config"
    config.write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {host_key}\nPidFile none\n"
        f"AuthorizedKeysFile {folder / 'authorized_keys'}\nStrictModes no\nUsePAM no\n"
        f"PermitRootLogin prohibit-password\nPasswordAuthentication no\nMaxStartups 100\n"
        f"KbdInteractiveAuthentication no\n"
        f'SetEnv PATH="{programs}:/usr/local/bin:/usr/bin:/bin"\n'
    )
    process = subprocess.Popen([SSHD, "-D", "-e", "-f", str(config)], stderr=subprocess.PIPE)
    log = _Log(process)
    try:
        log.wait_until_it_listens()
        yield Host(port=port, folder=folder, programs=programs, key=key)
    finally:
        process.terminate()
        process.wait()
        log.join()


class _Log(threading.Thread):
    """Reads what sshd says, so that it never blocks on it, and sees that it listens."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        super().__init__(daemon=True)
        self._process = process
        self._listens = threading.Event()
        self._lines: list[bytes] = []
        self.start()

    def run(self) -> None:
        stream = self._process.stderr
        if stream is None:
            return
        with stream:
            for line in stream:
                self._lines.append(line)
                if b"Server listening" in line:
                    self._listens.set()

    def wait_until_it_listens(self) -> None:
        if not self._listens.wait(DEADLINE):
            raise RuntimeError(f"sshd does not listen: {self._lines}")
