"""Where everything of one testbed lies below its folder, and which loopback ports it holds.

Used by the whole package. Ports lie below the kernel's ephemeral range: a daemon that is killed
and started again must find its port free, whatever connections others opened meanwhile.
"""

import contextlib
import random
import socket
from dataclasses import dataclass
from pathlib import Path

from bot.testbed.options import TestbedError

_LOWEST_PORT, _HIGHEST_PORT, _BLOCK = 12_000, 32_000, 100
_FIXED_PORTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Paths and ports of one testbed."""

    folder: Path
    nodes: tuple[str, ...]
    first_port: int

    @property
    def slurm_conf(self) -> Path:
        """For controller, nodes and clients."""
        return self.folder / "etc" / "slurm.conf"

    @property
    def ssh_config(self) -> Path:
        """The bot's client."""
        return self.folder / "ssh" / "config"

    @property
    def known_hosts(self) -> Path:
        """Host keys as the client knows them."""
        return self.folder / "ssh" / "known_hosts"

    @property
    def identity(self) -> Path:
        """The bot's private key."""
        return self.folder / "ssh" / "identity"

    @property
    def munge_socket(self) -> Path:
        """For slurm.conf and slurmdbd.conf."""
        return self.folder / "munge" / "munge.socket"

    @property
    def logs(self) -> Path:
        """One file per daemon."""
        return self.folder / "logs"

    @property
    def tools(self) -> Path:
        """First in the PATH of every ssh session: systemctl, journalctl, nvidia-smi."""
        return self.folder / "tools"

    @property
    def jobs(self) -> Path:
        """Scripts, output and journals; belongs to the job's user."""
        return self.folder / "jobs"

    @property
    def main_socket(self) -> Path:
        """Process 1 of the main machine."""
        return self.folder / "main.socket"

    @property
    def controller_port(self) -> int:
        """slurmctld."""
        return self.first_port

    @property
    def accounting_port(self) -> int:
        """slurmdbd."""
        return self.first_port + 1

    @property
    def database_port(self) -> int:
        """MariaDB."""
        return self.first_port + 2

    def node_folder(self, node: str) -> Path:
        """Mounted into the node."""
        return self.folder / "nodes" / node

    def node_socket(self, node: str) -> Path:
        """Process 1 of the node."""
        return self.node_folder(node) / "init.socket"

    def slurmd_port(self, node: str) -> int:
        """slurmd of this node."""
        return self.first_port + _FIXED_PORTS + self.nodes.index(node)

    def ssh_port(self, node: str) -> int:
        """sshd of this node."""
        return self.slurmd_port(node) + len(self.nodes)


def node_names(count: int) -> tuple[str, ...]:
    """`gpu-01` and on."""
    if not 3 <= count <= (_BLOCK - _FIXED_PORTS) // 2:
        raise TestbedError(f"a testbed has 3 to {(_BLOCK - _FIXED_PORTS) // 2} nodes, not {count}")
    return tuple(f"gpu-{number:02}" for number in range(1, count + 1))


def claim_ports() -> tuple[int, socket.socket]:
    """First port of a free block, and the claim on it, which ends when the socket is closed.

    The claim is an abstract socket: two testbeds that start at once cannot choose the same block,
    and nothing is left behind after a crash.
    """
    starts = list(range(_LOWEST_PORT, _HIGHEST_PORT, _BLOCK))
    random.shuffle(starts)
    for first in starts:
        claim = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(OSError):
            claim.bind(f"\0nodewarden-testbed-{first}")
            if all(_is_free(port) for port in range(first, first + _BLOCK)):
                return first, claim
        claim.close()
    raise TestbedError(f"no block of {_BLOCK} free ports below {_HIGHEST_PORT} on loopback")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def process_file(folder: Path) -> Path:
    """Says which process is the testbed of this folder."""
    return folder / "main.process"
