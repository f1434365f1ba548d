"""No page is lost: not behind an older one of the same key, not behind a pager that is away."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from actions.hands import Page, PageReceipt
from runbooks.journal import Journal
from runbooks.machine import Move
from runbooks.paging import Paging
from tests.runbooks.engine.lamps import ANN, LIGHT, Bench


class Desk:
    """A pager that remembers, and that can be away."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.away = False
        self.while_sending: Callable[[], None] = lambda: None

    def send(self, page: Page, *, deadline: timedelta) -> tuple[PageReceipt, ...]:
        self.sent.append(page.summary)
        meanwhile, self.while_sending = self.while_sending, lambda: None
        meanwhile()
        return (PageReceipt(backend="desk", accepted=not self.away, detail="said so"),)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, {"light": LIGHT})


@pytest.fixture
def desk() -> Desk:
    return Desk()


def sends(bench: Bench, desk: Desk) -> None:
    paging = Paging(bench.ledger, desk, bench.clock)
    paging.tick()
    paging.close()


def test_news_that_comes_while_the_page_before_it_is_sent_is_sent_too(
    bench: Bench, desk: Desk
) -> None:
    run = bench.ask("light", node="l1")
    journal = Journal(bench.parts)
    journal.move(run, Move.ESCALATE, "the first trouble")

    def again() -> None:
        bench.clock.forward(seconds=1)
        bench.requests.resume(run, ANN, "ann: looked", None)
        bench.clock.forward(seconds=1)
        journal.move(run, Move.ESCALATE, "the second trouble")

    desk.while_sending = again
    sends(bench, desk)
    sends(bench, desk)
    assert "the first trouble" in desk.sent[0]
    assert "the second trouble" in desk.sent[-1]
    assert len(desk.sent) == 2
    assert bench.ledger.query("SELECT state FROM pages") == [("accepted",)]


def test_a_pager_that_was_away_for_half_a_night_still_gets_the_page(
    bench: Bench, desk: Desk
) -> None:
    run = bench.ask("light", node="l1")
    Journal(bench.parts).move(run, Move.ESCALATE, "it needs you")
    desk.away = True
    for _ in range(360):
        sends(bench, desk)
        bench.clock.forward(minutes=1)
    assert len(desk.sent) < 60
    desk.away = False
    for _ in range(30):
        sends(bench, desk)
        bench.clock.forward(minutes=1)
    assert bench.ledger.query("SELECT state FROM pages") == [("accepted",)]


def test_a_new_page_goes_out_before_those_that_were_refused_before(
    bench: Bench, desk: Desk
) -> None:
    runs = [bench.ask("light", node=f"l{number}") for number in range(4)]
    journal = Journal(bench.parts)
    for run in runs[:3]:
        journal.move(run, Move.ESCALATE, "old trouble")
    desk.away = True
    sends(bench, desk)
    bench.clock.forward(minutes=5)
    desk.sent.clear()
    desk.while_sending = lambda: journal.move(runs[3], Move.ESCALATE, "new trouble")
    sends(bench, desk)
    assert "new trouble" in desk.sent[1]
    assert len(desk.sent) == 4
