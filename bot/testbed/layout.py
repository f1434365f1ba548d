"""Where everything of one testbed lies below its folder, and which addresses its machines hold.

Used by the whole package. Each testbed has a network of its own, 256 addresses of a private range
that this machine has no route to; ports are the usual ones, since each machine has its own.
"""

import contextlib
import ipaddress
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path

from bot.testbed.options import TestbedError

BACKUP = "ctl-2"
"""Host name of the machine of the second controller."""
SCRATCH = "/run/scratch"
"""A node's own disk, as the node sees it, where it has been given one."""
_ROUTES = Path("/proc/net/route")
_PRIVATE = (ipaddress.IPv4Network("10.0.0.0/8"), ipaddress.IPv4Network("172.16.0.0/12"))
_TRIES = 256
_FIRST_NODE = 11
_MOST_NODES = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Paths and addresses of one testbed."""

    folder: Path
    nodes: tuple[str, ...]
    network: ipaddress.IPv4Network
    backup: bool = False
    """Whether there is a machine for a second slurmctld."""

    @property
    def machines(self) -> tuple[str, ...]:
        """All that have a cable to the main machine."""
        return (*self.nodes, BACKUP) if self.backup else self.nodes

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
    def controller_folder(self) -> Path:
        """What a slurmctld writes for itself alone: its number and its log."""
        return self.folder / "controller"

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
    def host_address(self) -> str:
        """This machine's, where the tests and the bot run: its end of the link to the testbed."""
        return str(self.network[1])

    @property
    def controller_address(self) -> str:
        """The main machine: slurmctld, slurmdbd, MariaDB."""
        return str(self.network[2])

    @property
    def host_interface(self) -> str:
        """This machine's end, by name."""
        return "nwtb" + "x".join(self.host_address.split(".")[1:3])

    @property
    def controller_port(self) -> int:
        """slurmctld."""
        return 6817

    @property
    def accounting_port(self) -> int:
        """slurmdbd."""
        return 6819

    @property
    def database_port(self) -> int:
        """MariaDB, on the main machine's loopback."""
        return 3306

    @property
    def slurmd_port(self) -> int:
        """slurmd of every node."""
        return 6818

    @property
    def ssh_port(self) -> int:
        """sshd of every node."""
        return 22

    def address(self, machine: str) -> str:
        """A node's or the second controller's."""
        if machine == BACKUP:
            return str(self.network[3])
        return str(self.network[_FIRST_NODE + self.nodes.index(machine)])

    def port(self, machine: str) -> str:
        """The interface on the main machine that this machine's cable is in."""
        return f"port-{machine}"

    def node_folder(self, node: str) -> Path:
        """Mounted into the node."""
        return self.folder / "nodes" / node

    def node_socket(self, node: str) -> Path:
        """Process 1 of the node."""
        return self.node_folder(node) / "init.socket"


def hardware_address(address: str) -> str:
    """The MAC address of the interface with this address."""
    return "02:4e:" + ":".join(f"{int(part):02x}" for part in address.split("."))


def node_names(count: int) -> tuple[str, ...]:
    """`gpu-01` and on."""
    if not 3 <= count <= _MOST_NODES:
        raise TestbedError(f"a testbed has 3 to {_MOST_NODES} nodes, not {count}")
    return tuple(f"gpu-{number:02}" for number in range(1, count + 1))


def claim_network() -> tuple[ipaddress.IPv4Network, socket.socket]:
    """A network without a route, and the claim on it, which ends when the socket is closed.

    The claim is an abstract socket: two testbeds that start at once cannot choose the same network,
    and nothing is left behind after a crash.
    """
    taken = _routed()
    for _ in range(_TRIES):
        network = _random_network()
        if any(network.overlaps(route) for route in taken):
            continue
        claim = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(OSError):
            claim.bind(f"\0nodewarden-testbed-{network.network_address}")
            return network, claim
        claim.close()
    ranges = " or ".join(str(wide) for wide in _PRIVATE)
    raise TestbedError(f"no 256 addresses in {ranges} that this machine has no route to")


def _random_network() -> ipaddress.IPv4Network:
    wide = secrets.choice(_PRIVATE)
    first = int(wide.network_address) + 256 * secrets.randbelow(wide.num_addresses // 256)
    return ipaddress.IPv4Network((first, 24))


def _routed() -> list[ipaddress.IPv4Network]:
    """All networks that this machine has a route to, but for the default route."""
    if not _ROUTES.exists():
        return []
    found = []
    for line in _ROUTES.read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        address, mask = (int.from_bytes(bytes.fromhex(fields[at]), "little") for at in (1, 7))
        if mask:
            found.append(ipaddress.IPv4Network((address, mask.bit_count()), strict=False))
    return found


def process_file(folder: Path) -> Path:
    """Says which process is the testbed of this folder."""
    return folder / "main.process"
