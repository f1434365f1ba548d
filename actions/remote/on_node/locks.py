"""Locks of the node's program: one effect at a time, and no reading on top of a stuck one.

The folder belongs to root alone. A lock is held by whoever has its descriptor, so a child that
inherited it holds on when this program is gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Iterator

from actions.remote.on_node.words import Failed

READING_PATIENCE = 3.0
"""Seconds for a reading that another one has just begun; longer means that it hangs."""
_PAUSE = 0.05


def folder(path: str) -> str:
    """The folder, made if it is absent. Raises Failed for one that is not root's own."""
    with contextlib.suppress(FileExistsError):
        os.makedirs(path, mode=0o700)
    about = os.lstat(path)
    own = stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid()
    if not own or about.st_mode & 0o077:
        raise Failed(f"{path} is not a folder of root's own with mode 0700")
    return path


@contextlib.contextmanager
def held(state: str, name: str, patience: float = 0.0) -> Iterator[int | None]:
    """The lock's descriptor, or None if another holds it for all that time."""
    path = f"{folder(state)}/{name}.lock"
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        if not _locked(descriptor, time.monotonic() + patience):
            yield None
            return
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()).encode("ascii")
        os.pwrite(descriptor, stamp, 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _locked(descriptor: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE)
        else:
            return True


def since(state: str, name: str) -> str:
    """When the lock was last taken."""
    try:
        with open(f"{state}/{name}.lock", encoding="ascii") as stream:
            return stream.read(20)
    except OSError:
        return "an unknown time"
