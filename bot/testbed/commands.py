"""How the testbed runs a tool, asks a virtual machine, and waits for a condition."""

import json
import os
import pwd
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bot.testbed.options import TestbedError
from bot.testbed.requirements import program

_TOOL_SECONDS = 60.0
_POLL_SECONDS = 0.05
_SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def environment(slurm_conf: Path) -> dict[str, str]:
    """The whole environment of everything that the testbed starts: nothing is inherited."""
    return {
        "PATH": _SEARCH_PATH,
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "SLURM_CONF": str(slurm_conf),
    }


def run(
    argv: Sequence[str], env: Mapping[str, str], cwd: Path = Path("/"), *, typed: str = ""
) -> str:
    """Output of a tool that must succeed, given this text as its input."""
    done = subprocess.run(
        [program(argv[0]) or argv[0], *argv[1:]],
        input=typed.encode(),
        capture_output=True,
        env=dict(env),
        cwd=cwd,
        timeout=_TOOL_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode(errors="backslashreplace").strip()
        raise TestbedError(f"{' '.join(argv)[:200]}: exit {done.returncode}: {said[-500:]}")
    return done.stdout.decode(errors="backslashreplace")


def as_user(user: str, argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """The command that runs `argv` as this user, with these variables added."""
    entry = pwd.getpwnam(user)
    return [
        program("setpriv"),
        f"--reuid={entry.pw_uid}",
        f"--regid={entry.pw_gid}",
        "--init-groups",
        "--",
        "/usr/bin/env",
        f"HOME={entry.pw_dir}",
        f"USER={user}",
        f"LOGNAME={user}",
        *(f"{name}={value}" for name, value in env.items()),
        *argv,
    ]


def ask(path: Path, verb: str, unit: str = "", signal: int = 0) -> dict[str, Any]:
    """One question to process 1 of a virtual machine."""
    question = {"verb": verb, "unit": unit, "signal": signal}
    with socket.socket(socket.AF_UNIX) as stream:
        stream.settimeout(_TOOL_SECONDS)
        stream.connect(str(path))
        stream.sendall(json.dumps(question).encode() + b"\n")
        with stream.makefile("rb") as answer:
            reply: dict[str, Any] = json.loads(answer.readline())
    if "error" in reply:
        raise TestbedError(f"{verb} {unit}: {reply['error']}")
    return reply


def wait_for(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Poll until the condition is true; a TestbedError or OSError of it counts as not yet."""
    end = time.monotonic() + seconds
    last = ""
    while True:
        try:
            if condition():
                return
        except (TestbedError, OSError) as error:
            last = f" (last: {error})"
        if time.monotonic() >= end:
            raise TestbedError(f"{what}: not within {seconds:g} s{last}")
        time.sleep(_POLL_SECONDS)


def write(path: Path, text: str, mode: int = 0o644, owner: str = "root") -> None:
    """A file with its mode and owner, written in place so that bind mounts of it follow."""
    with path.open("w", encoding="utf-8") as stream:
        os.fchmod(stream.fileno(), mode)
        entry = pwd.getpwnam(owner)
        os.fchown(stream.fileno(), entry.pw_uid, entry.pw_gid)
        stream.write(text)
