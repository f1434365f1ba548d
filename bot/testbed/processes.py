"""Start and end of the main virtual machine, by a file that outlives the starting process."""

import json
import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

from bot.testbed.commands import environment
from bot.testbed.layout import Layout, process_file
from bot.testbed.machines import machine_argv
from bot.testbed.options import TestbedError
from bot.testbed.requirements import program

_END_SECONDS = 20.0
_POLL_SECONDS = 0.01


def spawn(layout: Layout) -> None:
    """Start the main machine and note which process it is.

    It ends with the starter, however that ends, where that can be had: the kernel watches the thread
    that starts, and only the main thread's end is that of the program.
    """
    watched = threading.current_thread() is threading.main_thread()
    with_us = [program("setpriv"), "--pdeathsig", "KILL", "--"] if watched else []
    with (layout.logs / "main.out").open("ab") as log:
        process = subprocess.Popen(
            [*with_us, *machine_argv(layout.folder / "main.json")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=environment(layout.slurm_conf),
            start_new_session=True,
        )
    note = {
        "pid": process.pid,
        "start": start_time(process.pid),
        "interface": layout.host_interface,
    }
    process_file(layout.folder).write_text(json.dumps(note), encoding="ascii")
    process.returncode = 0  # it outlives this object; `end` reaps it


def end(note_file: Path) -> None:
    """End the noted machine and everything in it; nothing if it has ended already.

    The noted process is `unshare`, which waits for process 1 of the machine; the kernel lets that
    one be reaped only when every other process of its namespace is gone.
    """
    try:
        note = json.loads(note_file.read_text(encoding="ascii"))
    except FileNotFoundError:
        return
    pid = int(note["pid"])
    if start_time(pid) != note["start"]:
        note_file.unlink()
        return
    for child in _children(pid) or [pid]:
        os.kill(child, signal.SIGKILL)
    deadline = time.monotonic() + _END_SECONDS
    while start_time(pid) == note["start"]:
        if time.monotonic() > deadline:
            raise TestbedError(f"process {pid} of {note_file.parent} does not end after SIGKILL")
        _reap(pid)
        time.sleep(_POLL_SECONDS)
    while note.get("interface") in (name for _, name in socket.if_nameindex()):
        if time.monotonic() > deadline:
            raise TestbedError(f"interface {note['interface']} of {note_file.parent} does not go")
        time.sleep(_POLL_SECONDS)  # the kernel clears a network away shortly after its last process
    note_file.unlink()


def start_time(pid: int) -> int:
    """Kernel start time of a living process, 0 of one that is gone or only waits to be reaped."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    fields = stat.rpartition(b")")[2].split()
    return 0 if fields[0] in {b"Z", b"X"} else int(fields[19])


def _children(pid: int) -> list[int]:
    processes = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [process for process in processes if _parent(process) == pid]


def _parent(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(stat.rpartition(b")")[2].split()[1])


def _reap(pid: int) -> None:
    """Where the starter itself ends the machine it is the parent."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return
