"""Who is woken, who is told that it is over, and what the card says of it."""

from datetime import timedelta
from pathlib import Path

import pytest

from actions.hands import Page, PageReceipt
from runbooks.cards import Cards
from runbooks.machine import RunState
from runbooks.paging import Paging
from tests.runbooks.engine.lamps import ANN, LIGHT, Bench


class Pager:
    """Takes what it is given, or nothing."""

    def __init__(self, *, accepts: bool = True) -> None:
        self.accepts = accepts
        self.sent: list[Page] = []

    def send(self, page: Page, *, deadline: timedelta) -> tuple[PageReceipt, ...]:
        self.sent.append(page)
        return (PageReceipt(backend="1-test", accepted=self.accepts, detail="HTTP 500"),)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path, {"light": LIGHT})
    bench.world.answers = ["refuse"]
    return bench


def send(bench: Bench, pager: Pager) -> None:
    paging = Paging(bench.ledger, pager, bench.clock)
    paging.tick()
    paging.close()


def last_line(bench: Bench, run: str) -> str:
    card = Cards(bench.parts, str).card(bench.run(run).id)  # type: ignore[arg-type]
    assert card is not None
    return card.lines[-1]


def test_a_run_that_needs_a_person_pages_once_and_the_card_says_who_took_it(bench: Bench) -> None:
    run = bench.go(bench.ask("light", node="l1"))
    assert "paging" in last_line(bench, run.id)
    pager = Pager()
    send(bench, pager)
    send(bench, pager)
    assert [page.resolved for page in pager.sent] == [False]
    assert "page accepted by 1-test" in last_line(bench, run.id)


def test_a_page_that_nobody_took_is_said_to_be_not_sent_and_is_tried_again(bench: Bench) -> None:
    run = bench.go(bench.ask("light", node="l1"))
    send(bench, Pager(accepts=False))
    assert "PAGE NOT SENT" in last_line(bench, run.id)
    later = Pager()
    send(bench, later)
    assert later.sent == [], "not at once"
    bench.clock.forward(seconds=31)
    send(bench, later)
    assert len(later.sent) == 1
    assert "page accepted" in last_line(bench, run.id)


def test_an_alert_ends_when_a_person_has_the_run_in_hand(bench: Bench) -> None:
    run = bench.go(bench.ask("light", node="l1"))
    pager = Pager()
    send(bench, pager)
    bench.requests.resume(run.id, ANN, "lit by hand", True)
    send(bench, pager)
    first, second = pager.sent
    assert (first.key, first.resolved) == (second.key, False)
    assert second.resolved
    assert bench.go(run.id).state is RunState.SUCCEEDED


def test_a_page_is_owed_over_a_restart(bench: Bench) -> None:
    bench.go(bench.ask("light", node="l1"))
    bench.restart()
    pager = Pager()
    send(bench, pager)
    assert len(pager.sent) == 1
