"""A Python that another OS user can run with this process's packages.

The running interpreter may lie where only root passes, below /root for example. Then the system's
Python of the same version takes its place, with the packages' folders in PYTHONPATH.
"""

import os
import subprocess
import sys
from pathlib import Path

from bot.testbed.commands import as_user
from bot.testbed.options import TestbedError
from bot.testbed.requirements import program


def python_for(user: str) -> list[str]:
    """Words to put before `-m bot.cli` or a script, inside `as_bot`."""
    if _runs(user, [sys.executable]):
        return [sys.executable]
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    folders = [entry for entry in sys.path if entry and passable(Path(entry))]
    words = ["/usr/bin/env", f"PYTHONPATH={os.pathsep.join(folders)}", program(name)]
    if not program(name) or not _runs(user, words):
        raise TestbedError(
            f"{user} cannot run {sys.executable}, and {name} is not installed for everybody:"
            " use an interpreter outside of /root"
        )
    return words


def passable(folder: Path) -> bool:
    """Whether every user may pass through the folder and all above it."""
    return not impassable(folder) and folder.is_dir()


def impassable(folder: Path) -> list[Path]:
    """Existing folders on the way that other users may not pass."""
    parts = (folder, *folder.parents)
    return [part for part in parts if part.exists() and not part.stat().st_mode & 0o001]


def _runs(user: str, words: list[str]) -> bool:
    argv = as_user(user, [*words, "-c", ""], {})
    return subprocess.run(argv, capture_output=True, cwd="/", check=False).returncode == 0
