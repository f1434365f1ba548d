"""Larger outputs, as files named by their SHA-256; a record holds only the digest.

Called by the ledger and by whoever records long output: `put` comes before the record commits, so
a digest in the ledger always had its file. Contents are redacted by the caller, at the entrance.
"""

import hashlib
import os
import re
import secrets
from collections.abc import Collection
from datetime import datetime
from pathlib import Path

_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


class ArtefactMissing(LookupError):
    """No such artefact, or it expired."""


class ArtefactDamaged(ValueError):
    """The file does not have the content that its name promises."""


def artefact_folder(database: Path) -> Path:
    """Where the artefacts of this database lie."""
    return Path(f"{database}.artefacts")


class ArtefactStore:
    """A folder of files named by digest, spread over 256 subfolders."""

    def __init__(self, folder: Path) -> None:
        """The folder is made when the first artefact comes."""
        self._folder = folder

    def put(self, content: bytes) -> str:
        """Store `content` durably; its digest. The same content is stored once."""
        digest = hashlib.sha256(content).hexdigest()
        target = self._path(digest)
        if target.exists():
            os.utime(target)
            return digest
        make_private(self._folder, target.parent)
        part = target.parent / f".{digest}.{secrets.token_hex(4)}"
        try:
            _write(part, content)
            part.rename(target)
        finally:
            part.unlink(missing_ok=True)
        sync_folder(target.parent)
        sync_folder(self._folder)
        return digest

    def get(self, digest: str) -> bytes:
        """The content, checked. Raises ArtefactMissing or ArtefactDamaged."""
        path = self._path(digest)
        try:
            content = path.read_bytes()
        except FileNotFoundError as error:
            raise ArtefactMissing(
                f"artefact {digest} is not there: it expired, or the backup came without it"
            ) from error
        if hashlib.sha256(content).hexdigest() != digest:
            raise ArtefactDamaged(
                f"{path} does not hold what its name says: do not trust it; compare a backup"
            )
        return content

    def expire(self, before: datetime, keep: Collection[str] = ()) -> int:
        """Remove files last stored before then, except `keep`; how many."""
        removed = 0
        for path in self._folder.glob("??/*"):
            old = path.stat().st_mtime < before.timestamp()
            if old and path.name not in keep:
                path.unlink()
                removed += 1
        return removed

    def _path(self, digest: str) -> Path:
        """Where it lies; anything that is no digest is refused, so no path can be smuggled in."""
        if not _DIGEST.fullmatch(digest):
            raise ArtefactMissing(f"{digest[:80]!r} is not a SHA-256 in hexadecimal digits")
        return self._folder / digest[:2] / digest


def make_private(*folders: Path) -> None:
    """Make folders for the bot alone; `mkdir(parents=True)` would leave the upper ones open."""
    for folder in folders:
        folder.mkdir(mode=0o700, exist_ok=True)


def _write(path: Path, content: bytes) -> None:
    """Write and sync a new file."""
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make a rename durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
