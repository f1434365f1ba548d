"""What process 1 of each virtual machine is told: the main one and one per node.

The main machine holds munged, MariaDB, slurmdbd, slurmctld and, nested in it, the nodes. So one
kill ends the whole testbed. Pure but for looking up which system tools exist.
"""

import pwd
import sys
from pathlib import Path
from typing import Any

from bot.testbed import network, root_access
from bot.testbed.commands import environment
from bot.testbed.configuration import CONTROLLER
from bot.testbed.layout import BACKUP, Layout
from bot.testbed.requirements import program

Json = dict[str, Any]

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_REPLACED_TOOLS = ("systemctl", "journalctl", "nvidia-smi")
NODE_MOUNT = "/run/nodewarden-node"
"""Where a node sees its own folder; the tools look nowhere else."""


def machine_argv(spec: Path) -> list[str]:
    """The command that starts one virtual machine."""
    flags = ["--mount", "--uts", "--pid", "--net", "--fork", "--kill-child", "--mount-proc"]
    return [
        program("unshare"),
        *flags,
        "--",
        sys.executable,
        "-I",
        "-S",
        str(_SUPERVISOR),
        str(spec),
    ]


def main_spec(layout: Layout) -> Json:
    """The machine that is not a node."""
    folder = layout.folder
    units = {
        "munged": _unit(layout, "munged", _munged(layout), user="munge"),
        "mariadbd": _unit(layout, "mariadbd", _mariadbd(layout), user="mysql"),
        "slurmdbd": _unit(layout, "slurmdbd", [program("slurmdbd"), "-D"], user="slurm"),
        "slurmctld": _slurmctld(layout, "slurmctld"),
    }
    for name in layout.machines:
        argv = machine_argv(layout.node_folder(name) / "machine.json")
        units[name] = _unit(layout, f"init-{name}", argv)
    return {
        "socket": str(layout.main_socket),
        "hostname": CONTROLLER,
        "units": units,
        "autostart": ["munged", *layout.machines],
        "binds": [(f"{folder}/etc/hosts", "/etc/hosts")],
    }


def backup_spec(layout: Layout) -> Json:
    """The machine of the second controller: the same files, but for what two would both write."""
    home, conf = layout.node_folder(BACKUP), layout.controller_folder
    return {
        "socket": str(layout.node_socket(BACKUP)),
        "hostname": BACKUP,
        "units": {"slurmctld": _slurmctld(layout, "slurmctld-2")},
        "autostart": [],
        "binds": [(f"{layout.folder}/etc/hosts", "/etc/hosts"), (f"{home}/own", str(conf))],
    }


def _slurmctld(layout: Layout, log: str) -> Json:
    argv = [program("slurmctld"), "-D", "-f", str(layout.slurm_conf)]
    return _unit(layout, log, argv, user="slurm")


def _munged(layout: Layout) -> list[str]:
    home = layout.munge_socket.parent
    return [
        program("munged"),
        "--foreground",
        f"--socket={layout.munge_socket}",
        f"--key-file={home}/munge.key",
        f"--pid-file={home}/munged.pid",
        f"--log-file={home}/munged.log",
        f"--seed-file={home}/munged.seed",
        "--num-threads=4",
    ]


def _mariadbd(layout: Layout) -> list[str]:
    home = layout.folder / "mariadb"
    return [
        program("mariadbd"),
        "--no-defaults",
        f"--datadir={home}/data",
        f"--tmpdir={home}",
        f"--socket={home}/socket",
        f"--pid-file={home}/mariadbd.pid",
        f"--init-file={home}/init.sql",
        "--bind-address=127.0.0.1",
        f"--port={layout.database_port}",
        "--skip-name-resolve",
        "--innodb-buffer-pool-size=32M",
        "--innodb-log-file-size=16M",
        "--innodb-flush-log-at-trx-commit=0",
        "--performance-schema=OFF",
    ]


def node_spec(layout: Layout, node: str) -> Json:
    """One virtual node."""
    home = layout.node_folder(node)
    slurmd = [program("slurmd"), "-D", "-N", node, "-f", str(layout.slurm_conf)]
    sshd = [program("sshd"), "-D", "-e", "-f", f"{home}/sshd_config"]
    tools = [(str(layout.tools / name), program(name)) for name in _REPLACED_TOOLS if program(name)]
    return {
        "socket": str(layout.node_socket(node)),
        "hostname": node,
        "units": {
            "slurmd": _unit(layout, f"unit-slurmd-{node}", slurmd),
            "sshd": _unit(layout, f"sshd-{node}", sshd),
        },
        "autostart": [],
        "boot_arguments": {"slurmd": ["-b"]},
        "cable": {
            "down": [program("ip"), "link", "set", network.CABLE, "down"],
            "up": [program("ip"), "-batch", f"{home}/network"],
        },
        "private": ["/run"],
        "folders": ["/run/sshd", NODE_MOUNT],
        "binds": [
            (f"{home}", NODE_MOUNT),
            (f"{home}/boot_id", "/proc/sys/kernel/random/boot_id"),
            (f"{home}/gres.conf", str(layout.slurm_conf.with_name("gres.conf"))),
            (f"{layout.folder}/etc/hosts", "/etc/hosts"),
            *root_access.binds(layout, node),
            *tools,
        ],
        "boot_id": f"{home}/boot_id",
        "kernel_log": f"{home}/kernel.log",
        "previous_kernel_log": f"{home}/kernel-previous.log",
    }


def _unit(layout: Layout, name: str, argv: list[str], user: str = "") -> Json:
    env = environment(layout.slurm_conf)
    env["SLURMDBD_CONF"] = str(layout.slurm_conf.with_name("slurmdbd.conf"))
    unit: Json = {"argv": argv, "env": env, "log": str(layout.logs / f"{name}.out")}
    if user:
        entry = pwd.getpwnam(user)
        unit |= {"user": entry.pw_uid, "group": entry.pw_gid}
    return unit
