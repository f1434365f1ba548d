"""The network of one testbed: a bridge on the main machine, and a cable to everything else.

Each machine has a network namespace of its own, so its address ends with it, and all cables end
with the main machine. The one cable that leaves goes to this machine, for the bot and the tests.

A pulled cable is silence: packets are lost and connections time out, as behind a router. The far
ends are known by fixed hardware addresses, because the kernel would find out at once that nobody
on its own network answers, and would say "no route".
"""

import socket
import struct
from collections.abc import Iterable
from pathlib import Path

from bot.testbed import commands
from bot.testbed.layout import Layout, hardware_address
from bot.testbed.requirements import program

BRIDGE = "lan"
UPLINK = "uplink"
"""Main machine's end of the cable to this machine."""
CABLE = "eth0"
"""A node's end of its cable."""
_LISTENING = "0A"


def process_of(control: Path) -> int:
    """Process 1 of a machine, by the number it has for the asking process."""
    with socket.socket(socket.AF_UNIX) as stream:
        stream.connect(str(control))
        size = struct.calcsize("3i")
        pid, _, _ = struct.unpack("3i", stream.getsockopt(1, socket.SO_PEERCRED, size))
    return int(pid)


def inside(process: int, argv: Iterable[str]) -> list[str]:
    """The command that runs `argv` in the network of this process; all else stays as it is."""
    return [program("nsenter"), f"--net=/proc/{process}/ns/net", "--", *argv]


def listens(process: int, port: int) -> bool:
    """Whether something in this process's network waits for connections on this port."""
    lines = Path(f"/proc/{process}/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    waiting = (line.split() for line in lines)
    return any(
        state == _LISTENING and local.endswith(f":{port:04X}") for _, local, _, state, *_ in waiting
    )


def connect_host(layout: Layout) -> None:
    """The bridge, the cable between it and this machine, and both addresses."""
    main, host = process_of(layout.main_socket), layout.host_interface
    mac, far = hardware_address(layout.host_address), hardware_address(layout.controller_address)
    _change(
        layout,
        [
            f"link add {host} address {mac} type veth peer name {UPLINK} netns {main}",
            f"address add {layout.host_address}/24 dev {host}",
            f"link set {host} up",
            *_known(host, [layout.controller_address]),
        ],
    )
    lines = [
        "link set lo up",
        f"link add {BRIDGE} address {far} type bridge",
        f"link set {UPLINK} master {BRIDGE} up",
        f"address add {layout.controller_address}/24 dev {BRIDGE}",
        f"link set {BRIDGE} up",
    ]
    _change(layout, lines, main)


def connect_machines(layout: Layout) -> None:
    """A cable to each node and to the second controller; their machines must run."""
    main = process_of(layout.main_socket)
    processes = {name: process_of(layout.node_socket(name)) for name in layout.machines}
    lines = []
    for name, process in processes.items():
        mac, port = hardware_address(layout.address(name)), layout.port(name)
        lines += [
            f"link add {port} type veth peer name {CABLE} address {mac} netns {process}",
            f"link set {port} master {BRIDGE} up",
        ]
    addresses = [layout.address(name) for name in layout.machines]
    _change(layout, [*lines, *_known(BRIDGE, addresses)], main)
    _change(layout, _known(layout.host_interface, addresses))
    for name, process in processes.items():
        _change(layout, machine_lines(layout, name), process)


def machine_lines(layout: Layout, name: str) -> list[str]:
    """What gives a machine its network: commands of `ip`, at each boot."""
    others = [layout.address(other) for other in layout.machines if other != name]
    return [
        "link set lo up",
        f"address replace {layout.address(name)}/24 dev {CABLE}",
        f"link set {CABLE} up",
        *_known(CABLE, [layout.host_address, layout.controller_address, *others]),
    ]


def plug(layout: Layout, port: str, *, connected: bool) -> None:
    """Put a cable into the bridge or pull it, at the main machine's end."""
    words = f"link set {port} {'up' if connected else 'down'}"
    _change(layout, [words], process_of(layout.main_socket))


def _known(interface: str, addresses: list[str]) -> list[str]:
    return [
        f"neighbour replace {address} lladdr {hardware_address(address)} dev {interface}"
        " nud permanent"
        for address in addresses
    ]


def _change(layout: Layout, lines: list[str], process: int = 0) -> None:
    argv = ["ip", "-batch", "-"]
    env = commands.environment(layout.slurm_conf)
    words = inside(process, [program("ip"), *argv[1:]]) if process else argv
    commands.run(words, env, typed="\n".join(lines) + "\n")
