"""A file that holds space for the hour in which the disk is full. Used by the writer thread only."""

import os
from pathlib import Path

SIZE = 16 * 1024 * 1024
"""Bytes: room for some ten thousand outcomes and for the checkpoints that they need."""


class Ballast:
    """`<database>.ballast`: allocated blocks that are given back when a commit fails for space."""

    def __init__(self, database: Path, size: int = SIZE) -> None:
        """Nothing is touched yet."""
        self._path = Path(f"{database}.ballast")
        self._size = size

    def fill(self) -> bool:
        """Allocate it (again); False when there is not twice the room, so that it is not taken
        from the work that waits for space.
        """
        if self._path.exists() and self._path.stat().st_size == self._size:
            return True
        room = os.statvfs(self._path.parent)
        if room.f_bavail * room.f_frsize < 2 * self._size:
            return False
        try:
            handle = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(handle, 0, self._size)
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError:
            self.free()
            return False
        return True

    def free(self) -> None:
        """Give the space back."""
        self._path.unlink(missing_ok=True)
