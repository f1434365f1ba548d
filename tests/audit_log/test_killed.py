"""kill -9 at any moment: what was acknowledged is there, and the chain is sound."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path

import pytest

from audit_log.ledger import Transaction
from audit_log.rebuild import rebuild
from audit_log.records import Record
from audit_log.verify import verify
from tests.audit_log.ledgers import Counts, append, event, open_ledger


@pytest.mark.parametrize("acknowledged", [0, 1, 2, 3, 5, 8, 13, 40, 100])
def test_after_a_kill_everything_acknowledged_is_there(path: Path, acknowledged: int) -> None:
    told = run_and_kill(path, acknowledged)
    ledger = open_ledger(path, projectors=[Counts()])
    records = list(ledger.records())
    assert len(told) >= acknowledged
    assert set(told) <= {record.seq for record in records}
    assert ledger.query("SELECT sum(n) FROM counts") == [(len(records),)]
    assert rebuild(ledger).differing == ()
    assert append(ledger, event()).seq == len(records) + 1
    ledger.close()
    assert verify(path).sound


def test_pairs_of_events_of_one_request_are_there_together_or_not_at_all(path: Path) -> None:
    for _ in range(4):
        run_and_kill(path, 9)
    ledger = open_ledger(path, projectors=[Counts()])
    numbers = [record.event.data["pair"] for record in ledger.records(after=1)]
    ledger.close()
    assert numbers[0::2] == numbers[1::2]
    assert len(numbers) >= 72


def run_and_kill(path: Path, acknowledged: int) -> list[int]:
    """Commit from three threads in a child and kill it after so many; what it had told."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            commit_for_ever(path, writing)
        finally:
            os._exit(1)
    os.close(writing)
    told: list[int] = []
    with os.fdopen(reading) as pipe:
        assert pipe.readline() == "open\n"
        while len(told) < acknowledged:
            told.append(int(pipe.readline()))
        os.kill(child, signal.SIGKILL)
        told += [int(line) for line in pipe.read().splitlines(keepends=True) if line[-1] == "\n"]
    os.waitpid(child, 0)
    return told


def commit_for_ever(path: Path, writing: int) -> None:
    """In the child."""
    ledger = open_ledger(path, projectors=[Counts()])
    os.write(writing, b"open\n")

    def work() -> None:
        while True:
            pair = int.from_bytes(os.urandom(5), "big")

            def decide(transaction: Transaction, pair: int = pair) -> Record:
                transaction.append(event(pair=pair))
                return transaction.append(event(pair=pair))

            os.write(writing, b"%d\n" % ledger.commit(decide).seq)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    threads[0].join()


SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
static int count;
int nodewarden_syncs(void) { return count; }
int fdatasync(int fd) { count++; return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd); }
int fsync(int fd) { count++; return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd); }
"""


def test_each_acknowledged_commit_was_synced_to_the_disk(tmp_path: Path) -> None:
    """Counted in the C library: a setting that is read back could still not be obeyed."""
    source, library = tmp_path / "syncs.c", tmp_path / "syncs.so"
    source.write_text(SHIM)
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    except FileNotFoundError:
        pytest.skip("needs a C compiler")
    counted = subprocess.run(
        [sys.executable, "-c", f"from {__name__} import count; count()", tmp_path / "ledger.db"],
        env={**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    counts = [int(line) for line in counted.stdout.split()]
    assert len(counts) == 21
    assert all(later > earlier for earlier, later in pairwise(counts))


def count() -> None:
    """In the child: the number of syncs after each commit."""
    syncs = ctypes.CDLL(None).nodewarden_syncs
    ledger = open_ledger(Path(sys.argv[1]))
    print(syncs())
    for _ in range(20):
        append(ledger, event())
        print(syncs())
    ledger.close()
