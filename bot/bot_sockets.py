"""Where the bot's socket lies, and whose it may be. Used by `bot.serve` and by the command line.

The data folder is closed to everybody but the bot, so its socket lies in /run where that can be used.
A socket says who made it: one of a stranger is never spoken to, whatever it answers.
"""

import os
import pwd
import socket
import stat
from dataclasses import dataclass
from pathlib import Path

RUN = Path("/run/nodewarden/nodewarden.sock")
"""For the bot whose data folder is the default one: the others name theirs under `bot.socket`."""
DATA_FOLDER = Path("/var/lib/nodewarden")
"""The default of `bot.data_folder`."""
NAME = "nodewarden.sock"


class CannotListen(Exception):
    """The socket belongs to somebody else; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the bot listens, and what is to be known about it."""

    path: Path
    note: str


def candidates(data_folder: Path) -> tuple[Path, ...]:
    """Where a bot with this data folder listens when nobody said where, the best first."""
    beside = data_folder / NAME
    return (RUN, beside) if data_folder == DATA_FOLDER else (beside,)


def to_listen(named: Path | None, data_folder: Path) -> Place:
    """Where the bot listens, `named` (`bot.socket`) or by itself; makes the folder in /run where it
    may. Raises CannotListen.
    """
    if named is not None:
        return Place(_free(named), "as bot.socket says")
    *shared, beside = candidates(data_folder)
    why = "set bot.socket to a path in a folder that they may enter"
    for path in shared:
        why = _unusable(path)
        if not why:
            return Place(path, "every OS user of this host may ask; the bot decides who may what")
    return Place(_free(beside), f"in the data folder, which other OS users cannot enter: {why}")


def to_ask(data_folder: Path) -> Path:
    """Where to look for the bot when nobody said where: in the order in which it chooses."""
    places = candidates(data_folder)
    return next((path for path in places if os.access(path, os.F_OK)), places[0])


def stranger(path: Path, owner: int) -> str:
    """Why the one who listens at `path` is not to be trusted; the empty string when it is.

    The bot's own user is the one to whom the folder belongs, if nobody else can put a socket there.
    """
    if owner in {0, os.getuid()}:
        return ""
    folder = path.parent.stat()
    if folder.st_uid == owner and not folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return ""
    return (
        f"who listens at {path} is {_name(owner)}: neither root, nor you, nor the one to whom alone "
        f"{path.parent} belongs; nothing was sent: tell an admin"
    )


def _name(user: int) -> str:
    try:
        return f"OS user {pwd.getpwuid(user).pw_name}"
    except KeyError:
        return f"OS user {user}"


def _unusable(path: Path) -> str:
    """Why this shared place cannot be taken; the empty string when it can."""
    folder = path.parent
    try:
        if not folder.exists():
            folder.mkdir(mode=0o755)
            folder.chmod(0o755)  # whatever the umask is
        found = folder.stat()
    except OSError as problem:
        return f"{folder} cannot be made ({problem.strerror}); with systemd set RuntimeDirectory"
    if found.st_uid not in {0, os.geteuid()} or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"{folder} is not the bot's alone: give it to the bot's user with mode 0755"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"{folder} belongs to root: give it to the bot's user with mode 0755"
    return "another bot listens there; set bot.socket" if _answers(path) else ""


def _free(path: Path) -> Path:
    """The path, unless somebody listens there, which the ledger's lock cannot know, or something
    lies there that is no socket and would be removed.
    """
    if path.exists() and not path.is_socket():
        raise CannotListen(
            f"{path} is not a socket and was left alone: move it away, or name another path under "
            "bot.socket"
        )
    if _answers(path):
        raise CannotListen(
            f"another program listens at {path}: end it, or name another path under bot.socket"
        )
    return path


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as line:
        line.setblocking(False)
        try:
            line.connect(str(path))
        except BlockingIOError:
            return True  # a crowd stands before it
        except OSError:
            return False
    return True
