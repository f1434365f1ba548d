"""The disk runs full at each commit: nothing is lost that was promised, and work goes on after."""

import os
import resource
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from audit_log.errors import StoreFailed, StoreFull
from audit_log.ledger import Ledger, Urgency
from audit_log.verify import verify
from tests.audit_log.ledgers import append, event, open_ledger

BALLAST = 16 * 1024 * 1024


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of its own that can be filled."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small file system")
    with tempfile.TemporaryDirectory() as folder:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", folder], check=False
        )
        if mounted.returncode:
            pytest.skip("this machine does not let root mount a tmpfs")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "-l", folder], check=True)


class Filler:
    """Takes all the space but a given number of bytes."""

    def __init__(self, disk: Path) -> None:
        self._path = disk / "filler"

    def leave(self, room: int) -> None:
        free = os.statvfs(self._path.parent)
        with self._path.open("ab") as file:
            file.write(b"\0" * max(0, free.f_bavail * free.f_frsize - room))

    def go(self) -> None:
        self._path.unlink()


def commit_until_full(ledger: Ledger, urgency: Urgency) -> list[int]:
    """What was acknowledged before the first refusal."""
    stored: list[int] = []
    for _ in range(5000):
        try:
            stored.append(append(ledger, event(text="x" * 900), urgency).seq)
        except StoreFull:
            return stored
    raise AssertionError("the disk never ran full")


@pytest.mark.parametrize("room", [0, 4096, 5000, 8192, 12288, 40_000, 200_000])
def test_a_full_disk_loses_nothing_and_refuses_only_new_work(small_disk: Path, room: int) -> None:
    told: list[StoreFailed] = []
    ledger = open_ledger(small_disk / "ledger.db", on_store_failure=told.append)
    filler = Filler(small_disk)
    first = append(ledger, event()).seq
    assert (small_disk / "ledger.db.ballast").stat().st_size == BALLAST
    filler.leave(room)

    stored = commit_until_full(ledger, Urgency.INTENT)
    assert [type(failure) for failure in told] == [StoreFull]
    assert not (small_disk / "ledger.db.ballast").exists()
    for urgency in (Urgency.ACK, Urgency.INTENT, Urgency.REST):
        with pytest.raises(StoreFull):
            append(ledger, event(), urgency)
    outcomes = [append(ledger, event(text="o" * 900), Urgency.OUTCOME).seq for _ in range(200)]
    assert len(told) == 1, "one trouble is told once"
    acknowledged = [1, first, *stored, *outcomes]
    assert [record.seq for record in ledger.records()] == acknowledged
    assert acknowledged == list(range(1, len(acknowledged) + 1))

    filler.go()
    assert append(ledger, event(), Urgency.INTENT).seq == len(acknowledged) + 1
    assert ledger.problem is None
    assert (small_disk / "ledger.db.ballast").stat().st_size == BALLAST
    ledger.close()
    assert verify(small_disk / "ledger.db").sound
    again = open_ledger(small_disk / "ledger.db")
    assert again.head.seq == len(acknowledged) + 1
    again.close()


def test_an_outcome_that_finds_the_disk_full_is_stored_from_the_ballast(small_disk: Path) -> None:
    ledger = open_ledger(small_disk / "ledger.db")
    Filler(small_disk).leave(0)
    stored = [append(ledger, event(text="x" * 900), Urgency.OUTCOME).seq for _ in range(300)]
    assert stored == list(range(2, 302))
    ledger.close()


def test_work_is_refused_until_the_ballast_fits_again(small_disk: Path) -> None:
    ledger = open_ledger(small_disk / "ledger.db")
    Filler(small_disk).leave(0)
    commit_until_full(ledger, Urgency.REST)
    with pytest.raises(StoreFull):
        append(ledger, event(), Urgency.INTENT)
    append(ledger, event(), Urgency.OUTCOME)
    assert isinstance(ledger.problem, StoreFull)
    ledger.close()


@pytest.mark.parametrize("extra", range(0, 24_000, 1500))
def test_a_file_size_limit_at_any_commit_leaves_a_sound_ledger(tmp_path: Path, extra: int) -> None:
    """The same without root: the limit is set in a child, at another place in the log each time."""
    path = tmp_path / "ledger.db"
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        run_limited(path, extra, writing)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        acknowledged = [int(line) for line in pipe]
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    ledger = open_ledger(path)
    stored = [record.seq for record in ledger.records()]
    ledger.close()
    assert set(acknowledged) <= set(stored)
    assert verify(path).sound


def run_limited(path: Path, extra: int, writing: int) -> None:
    """In the child: commit until the log may not grow, telling each acknowledged number."""
    status = 1
    try:
        ledger = open_ledger(path)
        append(ledger, event())
        limit = Path(f"{path}-wal").stat().st_size + extra
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        for _ in range(100):
            try:
                os.write(writing, b"%d\n" % append(ledger, event(text="x" * 500)).seq)
            except StoreFull:
                status = 0
                break
    finally:
        os._exit(status)
