"""Root's part on a virtual node: the program that an admin installs, and sudo's leave for it.

Installed as on a real node, below a folder of the node's own; `/usr/local/sbin` and `/etc/sudoers` of the
node lead there. The program looks for its configuration and its notes beside where it really lies.
"""

from pathlib import Path

from actions.remote.installing import CONFIGURATION, SUDOERS, Wanted, install
from actions.remote.program_words import PROGRAM
from actions.shell import Runner
from bot.testbed.commands import write
from bot.testbed.layout import Layout
from bot.testbed.options import TestbedOptions

_FOLDERS = ("etc/sudoers.d", "sbin")


def prepare(layout: Layout, node: str, options: TestbedOptions, mount: str) -> None:
    """Install it for this node, which sees its folder at `mount`."""
    root = root_of(layout, node)
    for name in _FOLDERS:
        (root / name).mkdir(parents=True)
    wanted = Wanted(root=root, user=options.bot_user)
    tuple(install(wanted, Runner()))
    (root / "sbin" / Path(PROGRAM).name).symlink_to(f"{mount}/root{PROGRAM}")
    write(_below(root, CONFIGURATION), _configuration(layout))


def binds(layout: Layout, node: str) -> list[tuple[str, str]]:
    """What lies where in the node."""
    root = root_of(layout, node)
    return [
        (f"{root}/sbin", str(Path(PROGRAM).parent)),
        (str(_below(root, SUDOERS)), "/etc/sudoers"),
    ]


def root_of(layout: Layout, node: str) -> Path:
    """Below it lies what an admin installed on the node, and the program's notes of effects."""
    return layout.node_folder(node) / "root"


def _configuration(layout: Layout) -> str:
    return (
        "units = slurmd\n"
        f"roots = {layout.jobs}\n"
        f"hosts = gpu-* {layout.network}\n"
        f"path = {layout.tools}:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
        f"slurm_conf = {layout.slurm_conf}\n"
        f"munge_socket = {layout.munge_socket}\n"
    )


def _below(root: Path, path: str) -> Path:
    return root / path.removeprefix("/")
