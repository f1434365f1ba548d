"""Everything of a testbed that exists before its first process: users, folders, keys, files.

Outside its folder it makes only the OS users (with a home each), and only those that are absent.
"""

import json
import os
import pwd
import secrets
import shutil
import stat
import uuid
from functools import partial
from pathlib import Path

from bot.testbed import configuration, network, root_access
from bot.testbed.commands import environment, run, wait_for, write
from bot.testbed.interpreter import impassable
from bot.testbed.layout import BACKUP, Layout
from bot.testbed.machines import NODE_MOUNT, backup_spec, main_spec, node_spec
from bot.testbed.options import TestbedError, TestbedOptions

_TOOLS = Path(__file__).with_name("tools")
_USERADD_SECONDS = 20.0
_NULL_DEVICE = (1, 3)
_LONGEST_PATH = 70
"""The kernel takes 107 characters as the path of a socket, and ours lie two folders deeper."""


def ensure_users(options: TestbedOptions) -> None:
    """The bot, the job's owner and the admin as ordinary OS users without a password."""
    for user in (options.bot_user, options.job_user, options.admin_user):
        wait_for(partial(_ensure_user, user), _USERADD_SECONDS, f"create the user {user}")


def _ensure_user(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        # Fails while another process holds the lock of /etc/passwd; the caller asks again. A
        # password of `*` matches nothing, while useradd's `!` would lock out ssh keys as well.
        argv = ["useradd", "--create-home", "--shell", "/bin/sh", "--password", "*", user]
        run(argv, environment(Path("/dev/null")))
    return True


def prepare_folders(layout: Layout, options: TestbedOptions) -> None:
    """The tree, each folder with the owner whose daemon writes there."""
    _folders(layout, options)
    password = secrets.token_hex(16)
    sql = layout.folder / "mariadb" / "init.sql"
    write(sql, configuration.database_sql(password), 0o600, "mysql")
    text = configuration.slurmdbd_conf(layout, password)
    write(layout.slurm_conf.with_name("slurmdbd.conf"), text, 0o600, "slurm")


def prepare_files(layout: Layout, options: TestbedOptions) -> None:
    """All other files; the database folder is made meanwhile."""
    _tools(layout)
    _munge_key(layout)
    _slurm_files(layout, options)
    _ssh_files(layout, options)
    for node in layout.nodes:
        _node_files(layout, node, options)
    if layout.backup:
        _backup_files(layout)
    write_known_hosts(layout)
    write(layout.folder / "main.json", json.dumps(main_spec(layout)), 0o600)


def make_folder(folder: Path) -> None:
    """The testbed's own folder. Daemons and jobs run as other users, who must pass to it."""
    if len(str(folder)) > _LONGEST_PATH:
        raise TestbedError(f"{folder}: longer than {_LONGEST_PATH} characters, which sockets need")
    if closed := impassable(folder):
        raise TestbedError(f"{closed[0]}: other users cannot pass (chmod o+x, or another folder)")
    try:
        folder.mkdir(mode=0o755)
    except FileExistsError:
        raise TestbedError(f"{folder}: exists; a testbed makes its folder itself") from None


def _folders(layout: Layout, options: TestbedOptions) -> None:
    owners = {
        "etc": "root",
        "tools": "root",
        "ssh": "root",
        "nodes": "root",
        "devices": "root",
        "logs": "slurm",
        "munge": "munge",
        "slurmctld": "slurm",
        layout.controller_folder.name: "slurm",
        "slurmdbd": "slurm",
        "mariadb": "mysql",
        "jobs": options.job_user,
    }
    for name, owner in owners.items():
        path = layout.folder / name
        path.mkdir(mode=0o755, parents=True)
        path.chmod(0o755)
        shutil.chown(path, owner, pwd.getpwnam(owner).pw_gid)
    for index in range(options.gpus):
        _device(layout.folder / "devices" / f"nvidia{index}")


def _device(path: Path) -> None:
    """A character device, as slurmd expects; a plain file, of which it complains, where denied."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(*_NULL_DEVICE))
    except PermissionError:
        path.touch()


def _tools(layout: Layout) -> None:
    """Copies, because the bot's user may be unable to read the installed package."""
    for tool in (*_TOOLS.glob("*.sh"), *_TOOLS.glob("[!_]*.py")):
        name = tool.stem.replace("_", "-")
        write(layout.tools / name, tool.read_text(encoding="utf-8"), 0o755)


def _munge_key(layout: Layout) -> None:
    write(layout.munge_socket.parent / "munge.key", secrets.token_hex(64), 0o400, "munge")


def _slurm_files(layout: Layout, options: TestbedOptions) -> None:
    etc = layout.slurm_conf.parent
    write(layout.slurm_conf, configuration.slurm_conf(layout, options))
    write(etc / "gres.conf", configuration.gres_conf(layout, options.gpus))
    write(etc / "hosts", configuration.hosts(layout))


def _ssh_files(layout: Layout, options: TestbedOptions) -> None:
    keygen(layout.identity, options.bot_user)
    public = layout.identity.with_suffix(".pub").read_text(encoding="utf-8")
    write(layout.folder / "ssh" / "authorized_keys", public)
    write(layout.ssh_config, configuration.ssh_client_config(layout, options))


def _node_files(layout: Layout, node: str, options: TestbedOptions) -> None:
    home = layout.node_folder(node)
    (home / "spool").mkdir(mode=0o755, parents=True)
    write(home / "boot_id", f"{uuid.uuid4()}\n")
    write(home / "kernel.log", "")
    write(home / "kernel-previous.log", "")
    write(home / "network", "\n".join(network.machine_lines(layout, node)) + "\n")
    write(home / "gpus", configuration.gpu_list(options.gpus))
    write(home / "hardware", configuration.hardware(node))
    write(home / "gres.conf", configuration.gres_conf(layout, options.gpus))
    write(home / "sshd_config", configuration.sshd_config(layout, node, options))
    keygen(home / "host_key", "root")
    root_access.prepare(layout, node, options, NODE_MOUNT)
    write(home / "machine.json", json.dumps(node_spec(layout, node)), 0o600)


def _backup_files(layout: Layout) -> None:
    own = layout.node_folder(BACKUP) / "own"
    own.mkdir(mode=0o755, parents=True)
    shutil.chown(own, "slurm", pwd.getpwnam("slurm").pw_gid)
    spec = layout.node_folder(BACKUP) / "machine.json"
    write(spec, json.dumps(backup_spec(layout)), 0o600)


def keygen(path: Path, owner: str) -> None:
    """A new ed25519 key pair at this path."""
    path.unlink(missing_ok=True)
    path.with_suffix(".pub").unlink(missing_ok=True)
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", str(path)]
    run(argv, environment(Path("/dev/null")))
    write(path, path.read_text(encoding="ascii"), 0o600, owner)


def write_known_hosts(layout: Layout) -> None:
    """The present host keys of all nodes, for the client."""
    lines = []
    for node in layout.nodes:
        public = (layout.node_folder(node) / "host_key.pub").read_text(encoding="ascii")
        kind, key = public.split()[:2]
        lines.append(f"{layout.address(node)} {kind} {key}\n")
    write(layout.known_hosts, "".join(lines))


def make_database(layout: Layout) -> None:
    """An empty MariaDB data folder; takes seconds, so it runs beside the rest."""
    argv = [
        "mariadb-install-db",
        "--no-defaults",
        "--user=mysql",
        "--skip-test-db",
        "--auth-root-authentication-method=normal",
        f"--datadir={layout.folder}/mariadb/data",
        # Two that share one folder for their temporary tables take them from each other.
        f"--tmpdir={layout.folder}/mariadb",
    ]
    run(argv, {**environment(layout.slurm_conf), "HOME": "/nonexistent"})
