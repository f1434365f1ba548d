"""Files of users, read as that user in a child of its own: the end of one file, one folder's entries.

Never as root: what the user may not read is not read, and a link leads nowhere that the user could
not go. What a path is, is seen before it is opened (O_PATH), so no device, pipe or socket is touched;
what it leads to must lie below a root of the configuration. No folder below is entered.
"""

from __future__ import annotations

import fnmatch
import json
import os
import pwd
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING

from actions.remote.on_node import processes, words
from actions.remote.on_node.answers import Answer
from actions.remote.on_node.locks import READING_PATIENCE, held, since
from actions.remote.on_node.site import Site

_LIMIT = 8.0
_MOST_BYTES = 128 * 1024
"""As JSON at most six times as much, which the bot still takes."""
_MOST_SEEN = 20_000
_MOST_SHOWN = 1000
_KINDS = (
    (stat.S_ISREG, "file"),
    (stat.S_ISDIR, "folder"),
    (stat.S_ISLNK, "link"),
)

if TYPE_CHECKING:
    Json = dict[str, object]


def tail(path: str, user: str, most: int, site: Site) -> Answer:
    """The end of a file: {size, mtime_ns, offset, text}."""
    words.below(path, site.roots)
    return _read(user, lambda: _tail(path, min(most, _MOST_BYTES), site), site)


def listed(path: str, user: str, pattern: str, site: Site) -> Answer:
    """Entries of a folder whose names fit: {real, entries, more}."""
    words.below(f"{path}/", site.roots)
    return _read(user, lambda: _listed(path, pattern, site), site)


def account(name: str, lowest: int) -> tuple[str, int, int]:
    """Name, uid and gid of an account that is a person's or a service's, never the system's own."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise words.Failed(f"this node knows no user {name}") from None
    if entry.pw_uid < max(1, lowest) or entry.pw_gid == 0:
        raise words.Refused(f"nothing is read as {name}: uid {entry.pw_uid} is below {lowest}")
    return entry.pw_name, entry.pw_uid, entry.pw_gid


def _read(user: str, work: Callable[[], Json], site: Site) -> Answer:
    identity = account(user, site.lowest_user)
    with held(site.state, f"files-{identity[1]}", READING_PATIENCE) as lock:
        if lock is None:
            stuck = since(site.state, f"files-{identity[1]}")
            why = f"a reading as {user} is under way or stuck since {stuck}: not started again"
            return Answer(words.BUSY, "", why)
        ended = processes.as_user(identity, lambda: _told(work), _LIMIT)
    if not ended.ok:
        code = words.TIMED_OUT if ended.code is None else 1
        return Answer(code, "", ended.why or f"it could not be read as {user}")
    try:
        answer = json.loads(ended.out)
    except ValueError:
        return Answer(1, "", "not read: the answer would be too long")
    if "why" in answer:
        return Answer(1, "", answer["why"])
    return Answer(0, ended.text() + "\n")


def _told(work: Callable[[], Json]) -> bytes:
    try:
        answer = work()
    except OSError as error:
        answer = {"why": f"not read: {error.strerror}"}
    except words.Refused as error:
        answer = {"why": f"not read: {error}"}
    return json.dumps(answer).encode("ascii")


def _seen(path: str, site: Site, more: int) -> tuple[int, str]:
    """A descriptor that can be looked at and not read, and where it really is."""
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC | more)
    real = os.readlink(f"/proc/self/fd/{descriptor}")
    inside = tuple(os.path.realpath(root) for root in site.roots)
    if not any(real == root or real.startswith(f"{root}/") for root in inside):
        raise words.Refused("it leads to a place below no root of /etc/nodewarden/helper.conf")
    return descriptor, real


def _tail(path: str, most: int, site: Site) -> Json:
    seen, _ = _seen(path, site, 0)
    if not stat.S_ISREG(os.fstat(seen).st_mode):
        raise words.Refused("it is not a regular file")
    descriptor = os.open(f"/proc/self/fd/{seen}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    about = os.fstat(descriptor)
    offset = max(0, about.st_size - most)
    text = os.pread(descriptor, most, offset).decode("utf-8", "backslashreplace")
    return {"size": about.st_size, "mtime_ns": about.st_mtime_ns, "offset": offset, "text": text}


def _listed(path: str, pattern: str, site: Site) -> Json:
    seen, real = _seen(path, site, os.O_DIRECTORY)
    descriptor = os.open(f"/proc/self/fd/{seen}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    entries: list[Json] = []
    more, count = False, 0
    with os.scandir(descriptor) as found:
        for entry in found:
            count += 1
            if count > _MOST_SEEN or len(entries) >= _MOST_SHOWN:
                more = True
                break
            if fnmatch.fnmatchcase(entry.name, pattern):
                entries.append(_entry(entry, descriptor))
    entries.sort(key=lambda one: str(one["name"]))
    return {"real": _name(real), "entries": entries, "more": more}


def _entry(entry: os.DirEntry[str], folder: int) -> Json:
    about = os.stat(entry.name, dir_fd=folder, follow_symlinks=False)
    kind = next((name for test, name in _KINDS if test(about.st_mode)), "other")
    shown: Json = {
        "name": _name(entry.name),
        "kind": kind,
        "size": about.st_size,
        "mtime_ns": about.st_mtime_ns,
        "uid": about.st_uid,
    }
    if kind == "link":
        shown["leads_to"] = _name(os.readlink(entry.name, dir_fd=folder))[:1024]
    return shown


def _name(name: str) -> str:
    """Names that are not UTF-8 survive."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
