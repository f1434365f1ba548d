"""Everybody else, while commands come from Slack: `python -m tests.bench.crowd FOLDER JOBS THREADS`.

Threads that submit at the command line's door, and beside them, one after the other, a snapshot of a
long queue, a verification and a backup. A process of its own, so that it takes nothing from the
stand-in that waits for acknowledgements. It ends with its standard input and prints what it did.
"""

import contextlib
import json
import sys
import threading
import time
from pathlib import Path

from audit_log.backup import back_up
from audit_log.verify import verify
from bot.local_client import BotAway, talk
from bot.local_wire import Ask
from tests.bench.cluster_speed import long_snapshot

AT_WORK = "at work"
"""Its first line: from now on the bot has a crowd before it."""


class Crowd:
    """What it does until it is over."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._guard = threading.Lock()
        self.begun = threading.Event()
        """Somebody had an answer: the others are asking too."""
        self.over = threading.Event()
        self.done = dict.fromkeys(
            ("submitted", "unanswered", "snapshots", "verified", "backups", "faults"), 0
        )

    def submit(self, number: int) -> None:
        """Ask and ask again; every request commits a record."""
        turn = 0
        while not self.over.is_set():
            turn += 1
            words = ("hands-off", f"gpu-{201 + number % 40}", f"asked {number}/{turn}")
            ask = Ask(words=words, key=f"crowd-{number}-{turn}", follow=False)
            answered = False
            with contextlib.suppress(BotAway):
                answered = any("reply" in line for line in talk(self._folder / "nw.sock", ask))
            self._count("submitted" if answered else "unanswered")
            self.begun.set()

    def look(self, jobs: int) -> None:
        """A snapshot, a verification, a backup, again and again, each at least once."""
        database = self._folder / "nodewarden.db"
        with long_snapshot(self._folder, jobs) as snapshot:
            while not self.over.is_set() or not self.done["backups"]:
                self._count("snapshots" if snapshot() == jobs else "faults")
                self._count("verified" if verify(database).sound else "faults")
                copy = self._folder / f"backup-{time.monotonic_ns()}.db"
                self._count("backups" if back_up(database, copy).sound else "faults")

    def _count(self, what: str) -> None:
        with self._guard:
            self.done[what] += 1


def main(folder: str, jobs: str, threads: str) -> None:
    """Until the end of standard input."""
    crowd = Crowd(Path(folder))
    work = [threading.Thread(target=crowd.submit, args=(n,)) for n in range(int(threads))]
    work.append(threading.Thread(target=crowd.look, args=(int(jobs),)))
    for thread in work:
        thread.start()
    crowd.begun.wait()
    print(AT_WORK, flush=True)
    sys.stdin.read()
    crowd.over.set()
    for thread in work:
        thread.join()
    print(json.dumps(crowd.done))


if __name__ == "__main__":
    main(*sys.argv[1:])
