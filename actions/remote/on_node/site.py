"""What this node allows: `/etc/nodewarden/helper.conf`, and where the program keeps its own files.

The file belongs to root and is written by nobody else, or nothing is done. Lines are `key = words`;
`#` begins a comment. Installed below another folder (`helper install --root`), the program uses the
`etc` and `run` of that folder.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from actions.remote.on_node import words

PROGRAM = "/usr/local/sbin/nodewarden-helper"
CONFIGURATION = "/etc/nodewarden/helper.conf"
STATE = "/run/nodewarden-helper"
_LARGEST = 65536
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LOWEST_USER = 1000
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class Misconfigured(Exception):
    """The configuration cannot be trusted or understood; says why."""


@dataclass(frozen=True)
class Site:
    """The configuration."""

    program: str
    state: str
    units: tuple[str, ...] = ("slurmd", "munge")
    roots: tuple[str, ...] = ()
    """Folders below which files of users may be read."""
    hosts: tuple[str, ...] = ()
    """Hosts that may be tried: names, patterns with `*`, or networks as 10.1.0.0/16."""
    path: str = _PATH
    slurm_conf: str = ""
    munge_socket: str = ""
    lowest_user: int = _LOWEST_USER
    """Files are read as no user below this number."""

    def environment(self) -> dict[str, str]:
        """The whole environment of every program that is started."""
        found = {"PATH": self.path, "LC_ALL": "C", "TZ": "UTC"}
        if self.slurm_conf:
            found["SLURM_CONF"] = self.slurm_conf
        return found


def open_site(program: str) -> Site:
    """The configuration that belongs to this program. Raises Misconfigured."""
    prefix = program[: -len(PROGRAM)] if program.endswith(PROGRAM) else ""
    site = Site(program=program, state=prefix + STATE)
    text = _read(prefix + CONFIGURATION)
    return site if text is None else _merged(site, text)


def _read(path: str) -> str | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Misconfigured(f"{path}: {error.strerror}") from error
    with os.fdopen(descriptor, "rb") as stream:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != 0:
            raise Misconfigured(f"{path}: not a file that belongs to root")
        if about.st_mode & _OTHERS_WRITE:
            raise Misconfigured(f"{path}: others than root may write it (chmod 0644)")
        try:
            return stream.read(_LARGEST).decode("ascii")
        except UnicodeDecodeError as error:
            raise Misconfigured(f"{path}: not plain ASCII") from error


def _merged(site: Site, text: str) -> Site:
    given: dict[str, object] = {}
    for number, line in enumerate(text.splitlines(), 1):
        plain = line.partition("#")[0].strip()
        if not plain:
            continue
        key, equals, value = (part.strip() for part in plain.partition("="))
        if not equals or key in given or key not in _READERS:
            known = " ".join(_READERS)
            raise Misconfigured(f"{CONFIGURATION} line {number}: not `key = words` of {known}")
        try:
            given[key] = _READERS[key](value)
        except (words.Refused, ValueError) as error:
            raise Misconfigured(f"{CONFIGURATION} line {number}: {error}") from error
    return Site(**{**site.__dict__, **given})


def _units(value: str) -> tuple[str, ...]:
    listed = tuple(value.split())
    return tuple(words.unit(one, listed) for one in listed)


def _roots(value: str) -> tuple[str, ...]:
    roots = tuple(words.path(one) for one in value.split())
    for root in roots:
        if root.split("/")[1] in {"etc", "proc", "sys", "dev", "run", "root", "boot"}:
            raise ValueError(f"{root} holds no files of users")
    return roots


def _path(value: str) -> str:
    if not value or any(not part.startswith("/") for part in value.split(":")):
        raise ValueError("a path is a list of absolute folders with `:` between them")
    return value


def _lowest(value: str) -> int:
    found = words.number(value, 1 << 29)
    if found < 1:
        raise ValueError("root is no user")
    return found


_READERS = {
    "units": _units,
    "roots": _roots,
    "hosts": lambda value: tuple(value.split()),
    "path": _path,
    "slurm_conf": words.path,
    "munge_socket": words.path,
    "lowest_user": _lowest,
}
