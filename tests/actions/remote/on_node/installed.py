"""The node's program, installed below a folder of its own and run as it runs on a node: as root."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actions.remote.installing import Wanted, install
from actions.shell import Runner
from tests.patience import DEADLINE

OWNER = "nobody"
"""An ordinary account that every machine has, with a number above 1000."""
FORMS = (
    "units = slurmd munge\nroots = {files}\nhosts = 127.0.0.1 10.9.0.0/16\npath = {tools}:{path}\n"
)
SYSTEM = "/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What one call of the program gave back."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its structured answer."""
        return json.loads(self.out)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A folder that is a node's root to the program."""

    root: Path

    @property
    def program(self) -> Path:
        return self.root / "usr/local/sbin/nodewarden-helper"

    @property
    def configuration(self) -> Path:
        return self.root / "etc/nodewarden/helper.conf"

    @property
    def state(self) -> Path:
        return self.root / "run/nodewarden-helper"

    @property
    def files(self) -> Path:
        """The root that users' files may be read from; belongs to the user."""
        return self.root / "files"

    @property
    def tools(self) -> Path:
        """First in the PATH of everything that the program starts."""
        return self.root / "tools"

    def tool(self, name: str, script: str) -> None:
        """Put a program on the node."""
        path = self.tools / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def started(self) -> list[str]:
        """What the tool `systemctl` of `counting` was asked to do."""
        asked = self.root / "asked"
        return asked.read_text().splitlines() if asked.exists() else []

    def counting(self, more: str = "") -> None:
        """A systemctl that notes what it is asked for."""
        self.tool("systemctl", f'echo "$*" >> {self.root}/asked\n{more}')

    def run(self, *words: str, **environment: str) -> Ended:
        """One call, as sudo makes it."""
        done = subprocess.run(
            [str(self.program), *words],
            env={"PATH": SYSTEM, **environment},
            capture_output=True,
            timeout=DEADLINE,
            check=False,
        )
        return Ended(
            code=done.returncode,
            out=done.stdout.decode("utf-8", "backslashreplace"),
            err=done.stderr.decode("utf-8", "backslashreplace"),
        )


@contextmanager
def installed() -> Iterator[Installed]:
    """Below a folder that other users can pass, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="nwnode-"))
    try:
        folder.chmod(0o755)
        (folder / "etc/sudoers.d").mkdir(parents=True)
        here = Installed(root=folder)
        tuple(install(Wanted(root=folder), Runner()))
        for place in (here.tools, here.files):
            place.mkdir()
        shutil.chown(here.files, OWNER)
        text = FORMS.format(files=here.files, tools=here.tools, path=SYSTEM)
        here.configuration.write_text(text)
        yield here
    finally:
        shutil.rmtree(folder)


def is_root() -> bool:
    """The program refuses everybody else."""
    return os.geteuid() == 0
