"""Callers who were answered together share their next commit."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from audit_log import writer as module
from audit_log.ballast import Ballast
from audit_log.database import Connection
from audit_log.writer import Urgency, Writer
from tests.patience import DEADLINE

LINGER = 600.0
"""Seconds by which the writer would keep a caller waiting: longer than any test."""


class Nothing:
    """A position that nothing moves."""

    def save(self) -> None:
        """There is none."""

    def restore(self, saved: None) -> None:
        """There is none."""


class SlowToCommit(Connection):
    """Stores nothing; its commits take very long by the clock that the writer reads."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.now = 0.0

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        self.statements.append(sql)
        self.now += LINGER if sql == "COMMIT" else 0.0
        return []

    def monotonic(self) -> float:
        return self.now

    def shared(self) -> list[int]:
        """How many requests each transaction served."""
        told = " ".join(self.statements).split("BEGIN IMMEDIATE")[1:]
        return [one.count("SAVEPOINT") for one in told]


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> SlowToCommit:
    made = SlowToCommit()
    monkeypatch.setattr(module, "LONGEST_LINGER", LINGER)
    monkeypatch.setattr(module, "time", made)
    return made


@pytest.fixture
def writer(connection: SlowToCommit, tmp_path: Path) -> Iterator[Writer]:
    made = Writer(connection, Nothing(), Ballast(tmp_path / "some.db"), lambda _failure: None)
    yield made
    made.close()


def ask(writer: Writer) -> "Future[int]":
    return writer.submit(lambda: 1, Urgency.REST)


def three_answered_together(writer: Writer) -> None:
    """One is served while two come; it comes back before these are served."""
    began, go_on = Event(), Event()

    def work() -> bool:
        began.set()
        return go_on.wait(DEADLINE)

    first = writer.submit(work, Urgency.REST)
    assert began.wait(DEADLINE)
    others = [ask(writer), ask(writer)]
    go_on.set()
    assert first.result(DEADLINE)
    others.append(ask(writer))
    assert [one.result(DEADLINE) for one in others] == [1, 1, 1]


def test_a_caller_who_comes_alone_is_not_kept_waiting(
    writer: Writer, connection: SlowToCommit
) -> None:
    for _ in range(3):
        assert ask(writer).result(DEADLINE) == 1
    assert connection.shared() == [1, 1, 1]


def test_who_was_answered_just_now_shares_a_commit_with_those_who_came_meanwhile(
    writer: Writer, connection: SlowToCommit
) -> None:
    three_answered_together(writer)
    assert connection.shared() == [1, 3]


def test_those_who_were_answered_together_are_waited_for(
    writer: Writer, connection: SlowToCommit
) -> None:
    three_answered_together(writer)
    early = [ask(writer), ask(writer)]
    with pytest.raises(TimeoutError):
        early[0].result(0.2)  # without the wait it would be there at once
    late = ask(writer)
    assert [one.result(DEADLINE) for one in (*early, late)] == [1, 1, 1]
    assert connection.shared() == [1, 3, 3]


def test_closing_waits_for_nobody(writer: Writer, connection: SlowToCommit) -> None:
    three_answered_together(writer)
    early = ask(writer)
    writer.close()
    assert early.result(0) == 1
    assert connection.shared() == [1, 3, 1]


def test_after_the_time_of_a_commit_whoever_came_is_served(
    writer: Writer, connection: SlowToCommit, monkeypatch: pytest.MonkeyPatch
) -> None:
    three_answered_together(writer)
    monkeypatch.setattr(module, "LONGEST_LINGER", 0.001)
    assert [one.result(DEADLINE) for one in (ask(writer), ask(writer), ask(writer))] == [1, 1, 1]
    assert ask(writer).result(DEADLINE) == 1
