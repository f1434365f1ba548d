"""Which OS user stands behind a local process: with sudo, the one who logged in (design 5)."""

import pwd
from dataclasses import dataclass
from pathlib import Path

NO_LOGIN = 4294967295
"""The kernel's login uid of a process that no login began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """The process at the other end of the socket, as the kernel names it."""

    pid: int
    uid: int


def names_of(peer: Peer) -> tuple[str, ...]:
    """Names under which the configuration may know the user: by name, then by number.

    Root that came through sudo counts as the user who logged in; the environment, which that user
    could set, is not asked.
    """
    uid = peer.uid
    if uid == 0:
        login = _login_uid(peer.pid)
        if login not in {None, 0, NO_LOGIN}:
            uid = int(login or 0)
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        return (str(uid),)
    return (name, str(uid))


def _login_uid(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/loginuid").read_text("ascii"))
    except (OSError, ValueError):
        return None
