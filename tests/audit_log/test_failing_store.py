"""A store that fails for other reasons than space: nobody waits for ever, nothing is promised."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from audit_log.database import Row
from audit_log.errors import StoreFailed, StoreFull
from audit_log.ledger import Ledger, ProjectionCursor, Urgency
from audit_log.records import Record
from audit_log.verify import verify
from tests.audit_log.ledgers import Held, append, appending, event, open_ledger
from tests.patience import DEADLINE

Execute = Callable[[str, Sequence[object]], list[Row]]


def break_at(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, statement: str, error: BaseException
) -> None:
    """Make the writing connection fail at this statement."""
    real = ledger._store.writer.execute

    def execute(sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        if sql == statement:
            raise error
        return real(sql, parameters)

    monkeypatch.setattr(ledger._store.writer, "execute", execute)


@pytest.mark.parametrize("urgency", Urgency)
def test_an_input_output_error_at_commit_fails_the_request_and_stops_all_writing(
    path: Path, monkeypatch: pytest.MonkeyPatch, urgency: Urgency
) -> None:
    told: list[StoreFailed] = []
    ledger = open_ledger(path, on_store_failure=told.append)
    with monkeypatch.context() as patch:
        break_at(ledger, patch, "COMMIT", StoreFailed("the disk is gone"))
        with pytest.raises(StoreFailed, match="the disk is gone"):
            append(ledger, event(), urgency)
    for later in Urgency:
        with pytest.raises(StoreFailed, match="the disk is gone"):
            append(ledger, event(), later)
    assert len(told) == 1
    assert ledger.head.seq == 1
    ledger.close()
    again = open_ledger(path)
    assert append(again, event()).seq == 2
    again.close()
    assert verify(path).sound


@pytest.mark.parametrize(
    "faults",
    [
        {"BEGIN IMMEDIATE": ZeroDivisionError("a fault")},
        {"RELEASE request": ZeroDivisionError("a fault")},
        {"COMMIT": StoreFull("full"), "ROLLBACK": ZeroDivisionError("a fault")},
    ],
)
def test_a_fault_of_the_writer_itself_answers_everybody(
    path: Path, monkeypatch: pytest.MonkeyPatch, faults: dict[str, BaseException]
) -> None:
    told: list[StoreFailed] = []
    ledger = open_ledger(path, on_store_failure=told.append)
    with monkeypatch.context() as patch:
        for statement, error in faults.items():
            break_at(ledger, patch, statement, error)
        futures = [ledger.submit(appending(event()), Urgency.REST) for _ in range(3)]
        answers = [future.exception(timeout=DEADLINE) for future in futures]
    assert all(isinstance(answer, StoreFailed) for answer in answers)
    with pytest.raises(StoreFailed, match="start again"):
        append(ledger, event())
    assert len(told) == 1
    ledger.close()
    again = open_ledger(path)
    assert again.head.seq == 1
    again.close()


def test_a_failing_callback_does_not_stop_the_writer(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: StoreFailed) -> None:
        raise ValueError("the pager is broken too")

    ledger = open_ledger(path, on_store_failure=fails)
    with monkeypatch.context() as patch:
        break_at(ledger, patch, "COMMIT", StoreFull("full"))
        with pytest.raises(StoreFull):
            append(ledger, event())
    assert append(ledger, event(), Urgency.OUTCOME).seq == 2
    ledger.close()


def test_a_batch_lost_for_space_keeps_its_outcomes_and_only_those(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(path)
    real = ledger._store.writer.execute
    failures = [StoreFull("full")]

    def execute(sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        if sql == "COMMIT" and ledger._position.head.seq > 3 and failures:
            raise failures.pop()
        return real(sql, parameters)

    monkeypatch.setattr(ledger._store.writer, "execute", execute)
    with Held(ledger):
        futures = [
            ledger.submit(appending(event(number=number)), urgency)
            for number, urgency in enumerate([Urgency.ACK, Urgency.OUTCOME, Urgency.INTENT] * 2)
        ]
    lost = [isinstance(future.exception(), StoreFull) for future in futures]
    assert lost == [True, False, True, True, False, True]
    assert [record.event.data["number"] for record in ledger.records(after=1)] == [1, 4]
    ledger.close()
    assert verify(path).sound


def test_a_projector_that_fails_takes_only_its_request_with_it(path: Path) -> None:
    class Broken:
        schema = "CREATE TABLE IF NOT EXISTS things (n INTEGER) STRICT;"
        tables = ("things",)

        def apply(self, cursor: ProjectionCursor, record: Record) -> None:
            cursor.execute("INSERT INTO things VALUES (?)", (record.event.data.get("number", 0),))

    ledger = open_ledger(path, projectors=[Broken()])
    with pytest.raises(Exception, match="cannot store TEXT"):
        append(ledger, event(number="many"))
    assert append(ledger, event(number=4)).seq == 2
    assert ledger.query("SELECT n FROM things") == [(0,), (4,)]
    ledger.close()


def test_at_most_sixty_four_requests_share_one_commit(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits: list[int] = []
    real = ledger._store.writer.execute

    def execute(sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        if sql == "COMMIT":
            commits.append(ledger._position.head.seq)
        return real(sql, parameters)

    monkeypatch.setattr(ledger._store.writer, "execute", execute)
    with Held(ledger):
        futures = [ledger.submit(appending(event()), Urgency.REST) for _ in range(130)]
    for future in futures:
        future.result()
    assert commits == [1, 65, 129, 131]
