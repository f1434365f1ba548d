"""Readings of the node: facts in one visit, a unit's state, logs. Nothing here changes anything.

Each part can fail by itself and then says why. A part whose earlier child still hangs (a driver that
ignores SIGKILL) is not started again.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable

from actions.remote.on_node import processes, words
from actions.remote.on_node.answers import Answer, plain
from actions.remote.on_node.locks import READING_PATIENCE, held, since
from actions.remote.on_node.site import Site

_PART = 8.0
_RANK = 19
_VISIT = 35.0
_LOG_LINES = "20000"
_TAIL_LINES = 40
_TAIL_LETTERS = 4000
_PROPERTIES = (
    "LoadState,ActiveState,SubState,MainPID,KillMode,Delegate,Result,"
    "InactiveEnterTimestamp,ActiveEnterTimestamp,StateChangeTimestamp"
)
_FAULTS = re.compile(
    r"Xid|NVRM|MCE|mce:|Machine check|AER:|EDAC|Hardware Error|blocked for more than|soft lockup"
    r"|hard LOCKUP|[Pp]anic|Oops|BUG:|Out of memory|I/O error|Remounting filesystem read-only"
)
BOOT_ID = "/proc/sys/kernel/random/boot_id"


def facts(site: Site) -> Answer:
    """Everything that a decision needs, each part with its text or with why there is none."""
    _step_aside()
    end = time.monotonic() + _VISIT
    parts: dict[str, dict[str, str]] = {"clock": _good(str(time.time_ns()))}
    parts["boot"] = _file(BOOT_ID)
    parts["booted"] = _file("/proc/stat", "btime ")
    readings: dict[str, Callable[[], processes.Ended]] = {
        "slurmd": lambda: _once(site, "slurmd", ["slurmd", "-C"]),
        "version": lambda: _once(site, "slurmd-version", ["slurmd", "-V"]),
        "gres": lambda: _once(site, "slurmd-gres", ["slurmd", "-G"]),
        "munge": lambda: _munge(site),
        "gpus": lambda: _once(site, "gpus", ["nvidia-smi", "-L"]),
        "kernel": lambda: _faults(_kernel(site, previous=False)),
        "previous": lambda: _faults(_kernel(site, previous=True)),
    }
    for name, read in readings.items():
        late = time.monotonic() > end
        parts[name] = _bad("no time was left for it") if late else _part(read())
    parts["clock-end"] = _good(str(time.time_ns()))
    return plain({"parts": parts})


def _step_aside() -> None:
    """A visit takes one core at the lowest rank: jobs on this node wait for each other at every step."""
    os.nice(_RANK)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def boot() -> Answer:
    """The boot id alone."""
    found = _file(BOOT_ID)
    return Answer(0, found["text"]) if "text" in found else Answer(1, "", found["why"])


def show(unit: str, site: Site) -> Answer:
    """What systemd says of an allowed unit."""
    argv = ["systemctl", "show", "-p", _PROPERTIES, "--", unit]
    return _told(processes.run(argv, site.environment(), _PART))


def kernel_log(previous: bool, site: Site) -> Answer:
    """The kernel's log, its end if it is long."""
    return _told(_kernel(site, previous=previous))


def logs(unit: str, lines: int, site: Site) -> Answer:
    """The last lines of a unit's journal."""
    argv = ["journalctl", "-u", unit, "-n", str(lines), "-o", "short-iso", "--no-pager", "-q"]
    return _told(processes.run(argv, site.environment(), _PART))


def _kernel(site: Site, *, previous: bool) -> processes.Ended:
    argv = ["journalctl", "-k", "-b", "-1" if previous else "0", "-o", "short-iso"]
    ended = processes.run([*argv, "--no-pager", "-n", _LOG_LINES], site.environment(), _PART)
    if ended.ok or previous:
        return ended
    return processes.run(["dmesg"], site.environment(), _PART)


def _faults(ended: processes.Ended) -> processes.Ended:
    """The last lines that look like a fault."""
    if not ended.ok:
        return ended
    found = [line for line in ended.text().splitlines() if _FAULTS.search(line)]
    tail = "\n".join(found[-_TAIL_LINES:])[-_TAIL_LETTERS:]
    return processes.Ended(code=0, out=tail.encode("utf-8", "backslashreplace"))


def _munge(site: Site) -> processes.Ended:
    """Whether this node makes credentials that it believes itself."""
    at = [f"--socket={site.munge_socket}"] if site.munge_socket else []
    made = processes.run(["munge", "-n", *at], site.environment(), _PART)
    if not made.ok:
        return made
    return processes.run(["unmunge", "-n", *at], site.environment(), _PART, feed=made.out)


def _once(site: Site, name: str, argv: list[str]) -> processes.Ended:
    with held(site.state, f"reading-{name}", READING_PATIENCE) as lock:
        if lock is None:
            stuck = since(site.state, f"reading-{name}")
            return processes.Ended(code=None, why=f"stuck since {stuck}: not started again")
        return processes.run(argv, site.environment(), _PART, keep=(lock,))


def _part(ended: processes.Ended) -> dict[str, str]:
    # slurmd -G writes to standard error.
    both = ended.text() + ended.err.decode("utf-8", "backslashreplace")
    return _good(both[-65536:]) if ended.ok else _bad(ended.said())


def _good(text: str) -> dict[str, str]:
    return {"text": text}


def _bad(why: str) -> dict[str, str]:
    return {"why": why[:300]}


def _file(path: str, beginning: str = "") -> dict[str, str]:
    try:
        with open(path, encoding="ascii", errors="backslashreplace") as stream:
            lines = stream.read(1 << 20).splitlines()
    except OSError as error:
        return _bad(f"{path}: {error.strerror}")
    found = [line for line in lines if line.startswith(beginning)]
    return _good(found[0]) if found else _bad(f"{path}: no line with {beginning}")


def _told(ended: processes.Ended) -> Answer:
    if ended.code is None:
        return Answer(words.TIMED_OUT, ended.text(), ended.why)
    return Answer(ended.code, ended.text(), "" if ended.ok else ended.said())
