"""The stop button: a file beside the database, so that it works without the bot (hands 5).

`nodewarden halt` writes it, a person may make it by hand with any content, and the engine looks at
it right before each intent and once more right before each effect.
"""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class HaltFile:
    """The file whose existence stops every new effect, at all doors, over restarts."""

    path: Path

    def reason(self) -> str | None:
        """Why the bot is halted, None when it is not. A file that cannot be read halts too."""
        try:
            return self.path.read_bytes()[:500].decode("utf-8", "backslashreplace").strip()
        except FileNotFoundError:
            return None
        except OSError as problem:
            return f"the halt file cannot be read: {problem.strerror}"

    def set(self, reason: str) -> None:
        """Halt. Keeps an earlier reason: the first person's words count. Raises OSError when no file
        can be made; one whose words do not fit on the disk halts all the same.
        """
        try:
            handle = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except FileExistsError:
            return
        try:
            with contextlib.suppress(OSError):
                os.write(handle, reason.encode("utf-8", "backslashreplace")[:500])
                os.fsync(handle)
        finally:
            os.close(handle)

    def clear(self) -> None:
        """Resume; only after the ledger holds who resumed. Raises OSError."""
        self.path.unlink(missing_ok=True)
