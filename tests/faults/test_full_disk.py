"""The disk of the data folder runs full while runs go on, with the bot as it is served."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from actions.simulated.wire import Request, Sort
from audit_log.verify import verify
from tests.faults.answers import told
from tests.faults.bots import Served, Yard


@pytest.fixture
def disk() -> Iterator[Path]:
    """A small file system of its own."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small file system")
    with tempfile.TemporaryDirectory(prefix="nwd-") as name:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", name], check=False
        )
        if mounted.returncode:
            pytest.skip("this machine does not let root mount a tmpfs")
        try:
            yield Path(name)
        finally:
            subprocess.run(["umount", "-l", name], check=True)


class Filler:
    """Takes all the space but a given number of bytes."""

    def __init__(self, disk: Path) -> None:
        self._path = disk / "filler"

    def leave(self, room: int) -> None:
        free = os.statvfs(self._path.parent)
        size = max(0, free.f_bavail * free.f_frsize - room)
        with self._path.open("ab") as file:
            file.write(b"\0" * size)

    def go(self) -> None:
        self._path.unlink()


def served(place: Yard, disk: Path) -> Served:
    bot = place.bot(data=disk / "data")
    bot.start()
    return bot


def sound(bot: Served) -> None:
    assert bot.data is not None
    report = verify(bot.data / "nodewarden.db")
    assert report.sound, report.findings


def fill_up(bot: Served, filler: Filler, room: int) -> str:
    """Ask until it is refused, as people do; the refusal."""
    filler.leave(room)
    for number in range(400):
        reply = bot.ask("hands-off", f"gpu-{1 + number % 40:03d}", "x" * 500)
        if reply["kind"] != "done":
            assert reply["kind"] == "refused"
            return "\n".join(reply["lines"])
    raise AssertionError("the disk never ran full")


@pytest.mark.parametrize("room", [0, 20_000])
def test_new_work_is_refused_and_the_people_on_call_are_paged_until_there_is_space(
    place: Yard, disk: Path, room: int
) -> None:
    bot = served(place, disk)
    filler = Filler(disk)
    told("full disk: a command", fill_up(bot, filler, room))
    told("full disk: a run", bot.lines("drain", "gpu-068", "x"))
    page = place.pager.wait_for("cannot write its audit log")
    assert "no space left" in page
    assert "no run is open" in bot.lines("status"), "questions are answered"
    assert place.effects() == []
    filler.go()
    bot.until("run-1", "drain", "gpu-068", "x")
    bot.until("Finished", "status", "run-1")
    assert place.effects() == ["drain gpu-068"]
    assert bot.stop() == 0
    sound(bot)


@pytest.mark.parametrize("nth", range(1, 5))
def test_a_disk_that_runs_full_in_the_middle_of_a_run_loses_no_outcome(
    place: Yard, disk: Path, nth: int
) -> None:
    """Full at the nth write: its outcome comes from the ballast, and the next intent waits."""
    bot = served(place, disk)
    filler = Filler(disk)
    writes = []

    def fill(request: Request, _: int) -> None:
        if request.sort is Sort.WRITE:
            writes.append(request)
            if len(writes) == nth:
                filler.leave(0)

    place.at_request = fill
    bot.ask("drain", "gpu-[065-068]", "cables")
    page = place.pager.wait_for("cannot write its audit log")
    assert "no space left" in page
    place.rounds(bot)
    shown = bot.lines("status", "run-1")
    assert "needs_person" not in shown
    assert len(place.effects()) == nth, "no effect without a record of its intent"
    assert shown.count(" done") >= nth, shown
    filler.go()
    bot.until("Finished", "status", "run-1")
    assert place.effects() == [f"drain gpu-{number}" for number in ("065", "066", "067", "068")]
    assert bot.stop() == 0
    sound(bot)


def test_a_bot_that_dies_on_a_full_disk_goes_on_where_it_stood(place: Yard, disk: Path) -> None:
    bot = served(place, disk)
    filler = Filler(disk)

    def fill(request: Request, _: int) -> None:
        if request.sort is Sort.WRITE:
            filler.leave(0)

    place.at_request = fill
    bot.ask("drain", "gpu-[065-066]", "cables")
    place.pager.wait_for("cannot write its audit log")
    bot.kill()
    filler.leave(0)
    place.at_request = lambda request, pid: None
    bot.launch()
    bot.wait(lambda: not bot.lives or "nodewarden is ready" in bot.log)
    assert not bot.lives, "it cannot even record that it starts"
    told("full disk: a start", bot.refusal, place.folders)
    filler.go()
    bot.start()
    bot.until("Finished", "status", "run-1")
    assert place.effects() == ["drain gpu-065", "drain gpu-066"]
    assert bot.stop() == 0
    sound(bot)


def test_a_halt_counts_on_a_full_disk(place: Yard, disk: Path) -> None:
    bot = served(place, disk)
    filler = Filler(disk)
    fill_up(bot, filler, 0)
    halted = bot.say("halt", "smoke")
    assert halted.code == 0
    told("full disk: a halt", halted.text, {**place.folders, str(disk): "<disk>"})
    filler.go()
    bot.until("HALTED", "status")
    bot.until("run-1", "drain", "gpu-068", "x")
    place.rounds(bot)
    assert place.effects() == []
