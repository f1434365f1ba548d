"""A disk of a node's own, and its freezing: a writer on it stands in D state and nothing ends it.

A file system that is frozen when its node ends stays in the kernel, with all who wait for it. So
`thaw_all` belongs to every way to stop a testbed, also where its main machine is long dead.
"""

from pathlib import Path

from bot.testbed import network
from bot.testbed.commands import environment, run
from bot.testbed.layout import SCRATCH, Layout
from bot.testbed.options import TestbedError
from bot.testbed.requirements import program

_BYTES = 64 << 20
_LOOPS = Path("/sys/block")
_NOWHERE = Path("/dev/null")
_THAW = 'mount "$1" "$2" && fsfreeze --unfreeze "$2"'


def missing() -> str:
    """One line that says why no node can have a disk here, or empty text."""
    if not Path("/dev/loop-control").exists():
        return "a disk of a virtual node needs loop devices (modprobe loop)"
    if not program("mkfs.ext4"):
        return "a disk of a virtual node needs: apt-get install e2fsprogs"
    return ""


def give(layout: Layout, node: str) -> None:
    """An empty ext4 that everybody may write, at `SCRATCH` on the node; nothing where it has one."""
    if why := missing():
        raise TestbedError(why)
    image = layout.node_folder(node) / "scratch.img"
    if image.exists():
        return
    with image.open("wb") as stream:
        stream.truncate(_BYTES)
    _run("mkfs.ext4", "-q", "-E", "root_owner=0:0", str(image))
    _on(layout, node, "mkdir", "-p", SCRATCH)
    _on(layout, node, "mount", "-o", "loop", str(image), SCRATCH)
    _on(layout, node, "chmod", "1777", SCRATCH)


def freeze(layout: Layout, node: str) -> None:
    """From now on every write waits in the kernel."""
    _on(layout, node, "fsfreeze", "--freeze", SCRATCH)


def thaw(layout: Layout, node: str) -> None:
    """The way back; a disk that is not frozen, or is not there, stays as it is."""
    thaw_all(layout.node_folder(node))


def thaw_all(folder: Path) -> None:
    """Thaw every disk whose image lies below the folder.

    A frozen file system cannot be reached through a node that is gone, but it can be mounted again.
    """
    for device in _devices(folder):
        words = ["unshare", "--mount", "--", "/bin/sh", "-c", _THAW, "sh", device, str(folder)]
        try:
            _run(*words)
        except TestbedError as error:
            if "Invalid argument" not in str(error):  # it is not frozen
                raise


def _devices(folder: Path) -> list[str]:
    found = []
    for entry in _LOOPS.glob("loop*/loop/backing_file"):
        try:
            image = Path(entry.read_text("utf-8", "surrogateescape").rstrip("\n"))
        except OSError:  # detached meanwhile
            continue
        if image.is_relative_to(folder):
            found.append(f"/dev/{entry.parts[-3]}")
    return found


def _on(layout: Layout, node: str, *argv: str) -> None:
    process = network.process_of(layout.node_socket(node))
    _run("nsenter", f"--mount=/proc/{process}/ns/mnt", "--", *argv)


def _run(*argv: str) -> None:
    run(argv, environment(_NOWHERE))
