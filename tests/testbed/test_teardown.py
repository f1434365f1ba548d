"""What a stopped testbed leaves: nothing, whoever stops it."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bot.testbed import SlurmTestbed, TestbedError, layout
from bot.testbed.commands import wait_for
from tests.testbed.fixture import fresh_folder

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(bool(SlurmTestbed.missing()), reason=SlurmTestbed.missing()),
]

_STARTER = """
import os, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from bot.testbed import SlurmTestbed
testbed = SlurmTestbed(Path(sys.argv[1]), nodes=3)
if sys.argv[2] == "main thread":
    testbed.start()
else:
    ThreadPoolExecutor().submit(testbed.start).result()
    testbed.train(("gpu-01", "gpu-02"))
os._exit(9)
"""


def _processes_of(folder: Path) -> list[str]:
    """Commands of all processes that name the folder in arguments, environment or open files."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            here = os.readlink(entry / "cwd")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if str(folder).encode() in words or here.startswith(str(folder)):
            found.append((entry / "comm").read_text().strip())
    return found


def _interfaces() -> set[str]:
    return {name for _, name in socket.if_nameindex()}


def _disks_of(folder: Path) -> list[str]:
    argv = ["losetup", "--noheadings", "--output=BACK-FILE"]
    images = subprocess.run(argv, capture_output=True, text=True, check=False).stdout.split()
    return [image for image in images if image.startswith(str(folder))]


def _interface_of(folder: Path) -> str:
    """Its own one: other testbeds may come and go meanwhile."""
    return str(json.loads(layout.process_file(folder).read_text("utf-8"))["interface"])


def test_stopping_leaves_no_process_and_no_mount() -> None:
    with fresh_folder() as folder:
        with SlurmTestbed(folder, nodes=3) as testbed:
            job = testbed.train_coupled(("gpu-01", "gpu-02"))
            if not testbed.missing_disks():
                testbed.freeze("gpu-01")
                testbed.wait_for(lambda: testbed.rank_state(job, "gpu-01") == "D", "a stuck writer")
            running = _processes_of(folder)
            disks = _disks_of(folder)
            interface = _interface_of(folder)
            assert interface in _interfaces()

        assert {"slurmctld", "slurmd", "sshd", "munged", "mariadbd", "slurmdbd"} <= set(running)
        assert _processes_of(folder) == []
        assert str(folder) not in Path("/proc/mounts").read_text()
        assert interface not in _interfaces()
        assert len(disks) == (0 if testbed.missing_disks() else 1)
        testbed.wait_for(lambda: not _disks_of(folder), "the disk to be let go", 10)


def _start_and_die(folder: Path, thread: str) -> None:
    argv = [sys.executable, "-c", _STARTER, str(folder), thread]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 9, done.stderr


def test_a_testbed_ends_with_the_program_that_started_it() -> None:
    with fresh_folder() as folder:
        _start_and_die(folder, "main thread")
        interface = _interface_of(folder)

        wait_for(lambda: _processes_of(folder) == [], 20, "all processes to end")
        wait_for(lambda: interface not in _interfaces(), 20, "its network to go")
        SlurmTestbed.stop_folder(folder)


def test_a_testbed_that_outlived_its_starter_is_stopped_by_its_folder() -> None:
    with fresh_folder() as folder:
        _start_and_die(folder, "another thread")
        assert "slurmstepd" in " ".join(_processes_of(folder))

        interface = _interface_of(folder)
        assert interface in _interfaces()
        SlurmTestbed.stop_folder(folder)

        assert _processes_of(folder) == []
        assert interface not in _interfaces()
        SlurmTestbed.stop_folder(folder)


def test_another_process_with_the_same_number_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "main.process").write_text(f'{{"pid": {os.getpid()}, "start": 1}}')

    SlurmTestbed.stop_folder(tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_two_testbeds_run_at_once(slurm_testbed: SlurmTestbed) -> None:
    with fresh_folder() as folder, SlurmTestbed(folder, nodes=3) as second:
        assert second.node_states("gpu-03") == {"IDLE"}
        assert second.layout.network != slurm_testbed.layout.network
        second.admin_drain("gpu-03", "only here")

        assert slurm_testbed.node_states("gpu-03") == {"IDLE"}

    assert slurm_testbed.node_states("gpu-03") == {"IDLE"}


def test_a_folder_that_others_cannot_pass_is_refused() -> None:
    with fresh_folder() as folder:
        folder.parent.chmod(0o700)
        with pytest.raises(TestbedError, match="other users cannot pass"):
            SlurmTestbed(folder, nodes=3).start()

        assert not folder.exists()


def test_a_folder_in_use_is_refused_and_its_testbed_lives_on(slurm_testbed: SlurmTestbed) -> None:
    with pytest.raises(TestbedError, match="exists"):
        SlurmTestbed(slurm_testbed.folder, nodes=3).start()

    assert slurm_testbed.controller_runs()
