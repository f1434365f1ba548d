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

    Whoever came through sudo or su, to root or to somebody else, counts as the user who logged in:
    else one person could approve as two. The environment, which that user could set, is not asked.
    """
    login = _login_uid(peer.pid)
    uid = peer.uid if login is None or login in {0, NO_LOGIN} else login
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        return (str(uid),)
    return (name, str(uid))


def login_name(user: str) -> str:
    """The name of a user that the configuration gives by number; the number where there is none."""
    if not user.isdecimal():
        return user
    try:
        return pwd.getpwuid(int(user)).pw_name
    except (KeyError, OverflowError):
        return user


def _login_uid(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/loginuid").read_text("ascii"))
    except (OSError, ValueError):
        return None
