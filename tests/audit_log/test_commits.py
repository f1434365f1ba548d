import sqlite3
import threading
from concurrent.futures import Future
from pathlib import Path

import pytest

from audit_log.chain import FIRST_PREV
from audit_log.errors import NotAReadQuery, StatementRefused, StoreBusy, StoreClosed
from audit_log.ledger import Ledger, Transaction, Urgency
from audit_log.records import EventKind, Record
from audit_log.verify import verify
from config.ids import RunId
from tests.audit_log.ledgers import CANARY, START, Held, append, appending, event, fill, open_ledger
from tests.patience import DEADLINE


def test_the_first_record_names_the_instance_and_it_stays_the_same(path: Path) -> None:
    first = open_ledger(path)
    instance = first.instance
    first.close()
    second = open_ledger(path)
    (opened,) = second.records()
    second.close()
    assert opened.event.kind is EventKind.LEDGER_OPENED
    assert opened.prev == FIRST_PREV
    assert len(instance) == 8
    assert int(instance, 16) >= 0
    assert second.instance == instance


def test_two_ledgers_have_different_instances(tmp_path: Path) -> None:
    ledgers = [open_ledger(tmp_path / f"{name}.db") for name in "ab"]
    for one in ledgers:
        one.close()
    assert ledgers[0].instance != ledgers[1].instance


def test_what_append_returns_is_what_a_reader_reads(ledger: Ledger) -> None:
    returned = append(ledger, event(number=7, text="drain – ü", nested={"b": [1, None, True]}))
    (read,) = ledger.records(after=1)
    assert returned == read
    assert read.at == START
    assert read.event.data == {"number": 7, "text": "drain – ü", "nested": {"b": [1, None, True]}}


def test_a_secret_in_data_is_masked_before_it_is_stored_or_returned(
    ledger: Ledger, path: Path
) -> None:
    record = append(ledger, event(text=f"login {CANARY} failed", deep=[{"k": CANARY}]))
    ledger.close()
    assert record.event.data == {"text": "login [redacted] failed", "deep": [{"k": "[redacted]"}]}
    for file in path.parent.rglob("*"):
        assert not file.is_file() or CANARY.encode() not in file.read_bytes()


def test_a_request_that_raises_leaves_nothing_and_gets_its_own_error(ledger: Ledger) -> None:
    def decide(transaction: Transaction) -> None:
        transaction.append(event())
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ledger.commit(decide)
    assert ledger.head.seq == 1
    assert ledger.query("SELECT n FROM counts WHERE kind = 'step.intended'") == []
    assert append(ledger, event()).seq == 2


def test_a_request_that_raises_takes_none_of_its_batch_with_it(ledger: Ledger) -> None:
    def fails(transaction: Transaction) -> Record:
        transaction.append(event(number=-1))
        raise ValueError("only mine")

    with Held(ledger):
        futures = [
            ledger.submit(fails, Urgency.REST)
            if number == 3
            else ledger.submit(appending(event(number=number)), Urgency.REST)
            for number in range(6)
        ]
    with pytest.raises(ValueError, match="only mine"):
        futures[3].result()
    stored = [record.event.data["number"] for record in ledger.records(after=1)]
    assert stored == [0, 1, 2, 4, 5]
    assert ledger.query("SELECT n FROM counts WHERE kind = 'step.intended'") == [(5,)]


def test_acks_go_before_outcomes_before_intents_before_the_rest(ledger: Ledger) -> None:
    with Held(ledger):
        futures = [
            ledger.submit(appending(event(urgency=int(urgency))), urgency)
            for urgency in reversed(Urgency)
        ]
    for future in futures:
        future.result()
    stored = [record.event.data["urgency"] for record in ledger.records(after=1)]
    assert stored == [0, 1, 2, 3]


def test_a_decision_sees_what_was_committed_a_moment_before(ledger: Ledger) -> None:
    """Compare-and-set: of many who want the same thing, one gets it."""

    def take(transaction: Transaction) -> bool:
        if transaction.query("SELECT 1 FROM last_runs WHERE run = 'run-9'"):
            return False
        transaction.append(event(run="run-9"))
        return True

    with Held(ledger):
        futures = [ledger.submit(take, Urgency.INTENT) for _ in range(20)]
    assert sorted(future.result() for future in futures) == [False] * 19 + [True]


def test_thirty_two_threads_never_fork_the_chain(ledger: Ledger, path: Path) -> None:
    def work(name: int) -> None:
        for number in range(25):
            urgency = Urgency(number % 4)
            append(ledger, event(thread=name, number=number), urgency)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report = verify(path)
    assert report.sound
    assert report.records == 1 + 32 * 25
    per_thread: dict[object, list[object]] = {}
    for record in ledger.records(after=1):
        per_thread.setdefault(record.event.data["thread"], []).append(record.event.data["number"])
    assert all(numbers == list(range(25)) for numbers in per_thread.values())
    assert len(per_thread) == 32


def test_nothing_is_handed_out_before_it_is_committed(ledger: Ledger) -> None:
    """When the future is done, another connection already reads the record."""
    seen: list[int] = []
    done = threading.Event()

    def look(future: "Future[Record]") -> None:
        seen.append(len(ledger.query("SELECT 1 FROM ledger WHERE seq = ?", (future.result().seq,))))
        done.set()

    with Held(ledger):
        ledger.submit(lambda t: t.append(event()), Urgency.ACK).add_done_callback(look)
    assert done.wait(DEADLINE)
    assert seen == [1]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM counts",
        "INSERT INTO counts VALUES ('x', 1) RETURNING n",
        "UPDATE counts SET n = 0",
        "WITH a AS (SELECT 1) INSERT INTO counts SELECT 'y', 2 FROM a",
        "DROP TABLE counts",
    ],
)
def test_a_decision_cannot_write_sql(ledger: Ledger, sql: str) -> None:
    with pytest.raises(NotAReadQuery):
        ledger.commit(lambda transaction: transaction.query(sql))
    assert ledger.query("SELECT * FROM counts") == [("ledger.opened", 1)]


def test_a_refused_statement_is_its_callers_error_and_the_ledger_goes_on(ledger: Ledger) -> None:
    with pytest.raises(StatementRefused, match="no such table"):
        ledger.commit(lambda transaction: transaction.query("SELECT * FROM nowhere"))
    assert ledger.problem is None
    assert append(ledger, event()).seq == 2


def test_a_program_that_holds_the_database_makes_a_request_fail_but_not_the_next(
    ledger: Ledger, path: Path
) -> None:
    ledger.commit(lambda transaction: transaction.query("PRAGMA busy_timeout=10"))
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy):
        append(ledger, event())
    raw.execute("ROLLBACK")
    raw.close()
    assert append(ledger, event()).seq == 2


def test_a_request_inside_a_request_is_refused_instead_of_waiting_for_itself(
    ledger: Ledger,
) -> None:
    with pytest.raises(RuntimeError, match="inside a request"):
        ledger.commit(lambda _: append(ledger, event()))


def test_closing_serves_what_is_queued_and_refuses_what_comes_after(path: Path) -> None:
    ledger = open_ledger(path)
    with Held(ledger):
        futures = [ledger.submit(lambda t: t.append(event()), Urgency.REST) for _ in range(70)]
        closing = threading.Thread(target=ledger.close)
        closing.start()
    closing.join()
    assert [future.result().seq for future in futures] == list(range(2, 72))
    with pytest.raises(StoreClosed):
        append(ledger, event())


def test_a_cancelled_request_is_not_run(ledger: Ledger) -> None:
    with Held(ledger):
        future = ledger.submit(lambda t: t.append(event()), Urgency.REST)
        assert future.cancel()
    assert append(ledger, event()).seq == 2


def test_records_are_read_by_run_after_a_number_and_up_to_a_limit(ledger: Ledger) -> None:
    fill(ledger, 1203)
    assert [record.seq for record in ledger.records()] == list(range(1, 1205))
    assert [record.seq for record in ledger.records(after=1200)] == [1201, 1202, 1203, 1204]
    assert [record.seq for record in ledger.records(after=3, limit=2)] == [4, 5]
    assert len(list(ledger.records(limit=501))) == 501
    of_run = list(ledger.records(run=RunId("run-1")))
    assert len(of_run) == 401
    assert {record.event.run for record in of_run} == {"run-1"}
