"""Turns a reference into the secret it names, at the last call and nowhere earlier.

Constructed by `bot.wiring` with the process environment. What `resolve` returns is used in one call
and kept nowhere. Errors name the reference, never the content.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from config.secrets import SecretRef

LARGEST_SECRET = 16 * 1024
"""Bytes; tokens and keys are far shorter, and a longer file is the wrong file."""


class SecretError(Exception):
    """A reference that leads to no usable secret; the message says what to do."""


class SecretStore:
    """Secrets from the environment and from files."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """A store over this environment."""
        self._environment = environment

    def resolve(self, reference: SecretRef) -> str:
        """The secret, without the newline at its end. Raises SecretError."""
        kind, _, name = reference.reference.partition(":")
        value = self._from_environment(name) if kind == "env" else _from_file(Path(name))
        value = value.removesuffix("\n").removesuffix("\r")
        if not value or "\0" in value:
            raise SecretError(f"{reference} is empty or not text: put the secret there")
        return value

    def _from_environment(self, name: str) -> str:
        value = self._environment.get(name)
        if value is None:
            raise SecretError(f"env:{name} is not set in the bot's environment: set it and restart")
        return value


def _from_file(path: Path) -> str:
    """The content of a file that others cannot read."""
    try:
        # not blocking, so that a FIFO in its place cannot hold the bot
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a path"
        raise SecretError(f"file:{path} cannot be read: {why}") from None
    try:
        _check_file(path, os.fstat(descriptor))
        raw = os.read(descriptor, LARGEST_SECRET + 1)
    finally:
        os.close(descriptor)
    if len(raw) > LARGEST_SECRET:
        raise SecretError(f"file:{path} is larger than {LARGEST_SECRET} bytes: no secret is")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise SecretError(f"file:{path} is not UTF-8 text") from None


def _check_file(path: Path, status: os.stat_result) -> None:
    """The open file itself is judged, so nobody can swap it between the look and the reading."""
    if not stat.S_ISREG(status.st_mode):
        raise SecretError(f"file:{path} is not a plain file")
    if status.st_mode & stat.S_IRWXO:
        raise SecretError(
            f"file:{path} can be read or written by everybody: chmod 0600 it, and change the secret"
        )
