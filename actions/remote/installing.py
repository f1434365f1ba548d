"""Puts the node's program, its configuration and sudo's leave for it where they belong.

Used by `nodewarden helper` through `actions.catalogue`. Runs as root on a node, or over the folder of a
node image. What is already as it should be is left alone; the site's own `helper.conf` is never
changed; what sudo would not understand is not installed.
"""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from actions.remote.packing import digest, program
from actions.remote.program_words import PROGRAM
from actions.shell import Command, Runner

SUDOERS = "/etc/sudoers.d/nodewarden"
CONFIGURATION = "/etc/nodewarden/helper.conf"
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}", re.ASCII)
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is installed, and where."""

    root: Path = Path("/")
    user: str = "nodewarden"
    """The bot's user on the node."""
    roots: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    dry_run: bool = False


class NotInstalled(Exception):
    """It could not be installed; says what was and what to do."""


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    content: bytes
    mode: int


def sudoers(user: str) -> str:
    """The drop-in: this user, root, exactly this program, no password. Raises NotInstalled."""
    if not _USER.fullmatch(user):
        raise NotInstalled(f"{user[:40]!r} is not the name of a user")
    return (
        f"# The bot's user may run this one program as root. Its list of verbs is fixed.\n"
        f"Defaults!{PROGRAM} !requiretty\n"
        f"{user} ALL=(root) NOPASSWD: {PROGRAM}\n"
    )


def authorized_keys(public: str) -> str:
    """The line that binds a key to the program. Raises NotInstalled for what is no public key."""
    words = public.split()
    if len(public.strip().splitlines()) != 1 or len(words) < 2 or words[0].startswith("-----"):  # noqa: PLR2004  kind, key
        raise NotInstalled("that file holds no public key: give the .pub file of the bot's key")
    return f'restrict,command="{PROGRAM} forced" {" ".join(words[:2])} nodewarden\n'


def configuration(roots: Sequence[str], hosts: Sequence[str]) -> str:
    """A first `helper.conf`."""
    return "\n".join(
        [
            "# What nodewarden-helper may touch on this node. Root's own; see docs/operations.md.",
            "units = slurmd munge",
            "# Folders below which files of users may be read, as that user:",
            f"roots = {' '.join(roots)}" if roots else "# roots = /scratch /home",
            "# Hosts that may be tried by TCP: names, patterns with *, networks:",
            f"hosts = {' '.join(hosts)}" if hosts else "# hosts = gpu-* 10.0.0.0/8",
            "",
        ]
    )


def install(wanted: Wanted, runner: Runner) -> Iterator[str]:
    """One line for each thing that was done or left alone. Raises NotInstalled."""
    at = wanted.root
    first = configuration(wanted.roots, wanted.hosts).encode("ascii")
    yield _put(_File(_below(at, PROGRAM), program(), 0o755), wanted)
    conf = _File(_below(at, CONFIGURATION), first, 0o644)
    yield f"{conf.path}: the site's own, left alone" if conf.path.exists() else _put(conf, wanted)
    yield from _allow(
        _File(_below(at, SUDOERS), sudoers(wanted.user).encode("ascii"), 0o440), wanted, runner
    )


def check(root: Path) -> Iterator[tuple[bool, str]]:
    """Whether what is installed below `root` is of this version and root's own."""
    place = _below(root, PROGRAM)
    try:
        about, found = place.stat(), place.read_bytes()
    except OSError as error:
        yield False, f"{place}: {error.strerror}; run `nodewarden helper install`"
        return
    same = found == program()
    words = f"of this version ({digest()[:16]})" if same else "of another version"
    yield same, f"{place}: {words}" + ("" if same else "; run `nodewarden helper install`")
    own = about.st_uid == 0 and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    yield own, f"{place}: " + ("root's own" if own else "others than root may change it")
    drop_in = _below(root, SUDOERS)
    yield drop_in.exists(), f"{drop_in}: {'there' if drop_in.exists() else 'absent'}"


def _allow(drop_in: _File, wanted: Wanted, runner: Runner) -> Iterator[str]:
    """Sudo's leave, once sudo itself has read it: a broken file in that folder locks sudo for all."""
    if not drop_in.path.parent.is_dir():
        raise NotInstalled(
            f"{drop_in.path.parent}: no such folder; install sudo, or use a forced command"
        )
    if wanted.dry_run or _fits(drop_in):
        yield _put(drop_in, wanted)
        return
    fresh = _written(drop_in)
    try:
        words = ("visudo", "-c", "-q", "-f", str(fresh))
        found = runner.run(
            Command(argv=words, time_limit=_MINUTE, environment={"PATH": os.defpath + ":/usr/sbin"})
        )
        if found.started and not found.ok:
            said = (found.stderr or found.stdout or found.lost).strip()
            raise NotInstalled(f"{drop_in.path}: not installed, visudo says: {said[:300]}")
        fresh.replace(drop_in.path)
    finally:
        fresh.unlink(missing_ok=True)
    yield f"{drop_in.path}: written" + ("" if found.started else "; visudo is not here to check it")


def _put(file: _File, wanted: Wanted) -> str:
    if _fits(file):
        return f"{file.path}: as it should be"
    if wanted.dry_run:
        return f"{file.path}: would be written (mode {file.mode:04o})"
    try:
        file.path.parent.mkdir(parents=True, exist_ok=True)
        _written(file).replace(file.path)
    except OSError as error:
        raise NotInstalled(f"{file.path}: {error.strerror}") from error
    return f"{file.path}: written"


def _fits(file: _File) -> bool:
    try:
        about = file.path.lstat()
        same = file.path.read_bytes() == file.content
    except OSError:
        return False
    own = stat.S_ISREG(about.st_mode) and about.st_uid == 0 and about.st_gid == 0
    return same and own and stat.S_IMODE(about.st_mode) == file.mode


def _written(file: _File) -> Path:
    """A file beside the final one, whole and with its mode; sudo passes over names with a dot."""
    fresh = file.path.with_name(f".{file.path.name}.new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        os.fchown(descriptor, 0, 0)
        os.fchmod(descriptor, file.mode)
        stream.write(file.content)
        stream.flush()
        os.fsync(descriptor)
    return fresh


def _below(root: Path, path: str) -> Path:
    return root / path.removeprefix("/")
