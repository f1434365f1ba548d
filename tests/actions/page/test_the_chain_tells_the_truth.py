"""Order, deadline and receipts of the chain."""

import threading
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from actions.hands import Page
from actions.page.backends import Accepted, MaybeAccepted, NotAccepted
from actions.page.chain import MOST_STUCK, PagerChain
from actions.page.slack_mention import SlackMention
from tests.actions.page.receivers import CLOCK, LIMIT, MAYBE, NO, PAGE, YES, Fake
from tests.patience import DEADLINE

HASTE = timedelta(seconds=2)


@dataclass(slots=True)
class Stuck:
    """A back end that comes back only when it is let go."""

    name: str = "stuck"
    calls: int = 0
    go: threading.Event = field(default_factory=threading.Event)

    def page(self, page: Page, limit: timedelta) -> Accepted:
        self.calls += 1
        self.go.wait(DEADLINE)
        return YES


def test_backends_are_asked_in_order_until_one_accepts() -> None:
    first, second, third = Fake("a", NO), Fake("b", YES), Fake("c", YES)
    receipts = PagerChain([first, second, third], CLOCK).send(PAGE, deadline=LIMIT)
    assert [(each.backend, each.accepted) for each in receipts] == [("a", False), ("b", True)]
    assert third.pages == []
    assert second.pages == [PAGE]


def test_a_total_failure_says_what_each_said() -> None:
    chain = PagerChain([Fake("a", NO), Fake("b", MAYBE)], CLOCK)
    receipts = chain.send(PAGE, deadline=LIMIT)
    assert [(each.accepted, each.unknown) for each in receipts] == [(False, False), (False, True)]
    assert [each.detail for each in receipts] == ["HTTP 500", "no answer within the time limit"]


def test_a_backend_that_breaks_in_an_unforeseen_way_stops_nothing() -> None:
    broken = Fake("a", ZeroDivisionError("secret text"))
    receipts = PagerChain([broken, Fake("b", YES)], CLOCK).send(PAGE, deadline=LIMIT)
    assert [each.accepted for each in receipts] == [False, True]
    assert receipts[0].unknown
    assert "ZeroDivisionError" in receipts[0].detail
    assert "secret" not in receipts[0].detail


def test_a_backend_that_never_comes_back_does_not_hold_the_next() -> None:
    stuck = Stuck()
    try:
        receipts = PagerChain([stuck, Fake("b", YES)], CLOCK).send(PAGE, deadline=HASTE)
    finally:
        stuck.go.set()
    assert [(each.accepted, each.unknown) for each in receipts] == [(False, True), (True, False)]


def test_a_backend_with_too_many_hanging_calls_is_not_asked_again() -> None:
    stuck = Stuck()
    chain = PagerChain([stuck, Fake("b", YES)], CLOCK)
    try:
        for _ in range(MOST_STUCK):
            chain.send(PAGE, deadline=HASTE / 10)
        first, second = chain.send(PAGE, deadline=HASTE)
    finally:
        stuck.go.set()
    assert stuck.calls == MOST_STUCK
    assert "not tried" in first.detail
    assert (first.unknown, second.accepted) == (False, True)


def test_each_backend_gets_its_share_of_what_is_left() -> None:
    backends = [Fake("a", NO), Fake("b", NO), Fake("c", NO)]
    PagerChain(backends, CLOCK).send(PAGE, deadline=timedelta(seconds=30))
    first, second, third = (each.limits[0] for each in backends)
    assert first <= timedelta(seconds=10)
    assert first < second < third <= timedelta(seconds=30)


def test_without_time_nobody_is_asked_and_the_receipts_say_so() -> None:
    fake = Fake("a", YES)
    (receipt,) = PagerChain([fake], CLOCK).send(PAGE, deadline=timedelta(0))
    assert (receipt.accepted, receipt.detail) == (False, "not tried: no time was left")
    assert fake.pages == []


def test_a_chain_without_backends_is_refused() -> None:
    with pytest.raises(ValueError, match="add one under `pages`"):
        PagerChain([], CLOCK)


def test_a_slack_mention_is_escaped_and_carries_the_key() -> None:
    posted: list[tuple[str, str]] = []

    def post(text: str, key: str, limit: timedelta) -> str:
        posted.append((text, key))
        return "C1/1700000000.000100"

    mention = SlackMention(name="slack", post=post)
    (receipt,) = PagerChain([mention], CLOCK).send(PAGE, deadline=LIMIT)
    assert (receipt.accepted, receipt.detail) == (True, "posted at C1/1700000000.000100")
    ((text, key),) = posted
    assert text.splitlines()[0] == PAGE.summary
    assert "a‹!channel›&amp;`id`" in text
    assert "<" not in text
    assert key == PAGE.key


@pytest.mark.parametrize("error", [NotAccepted("channel_not_found"), MaybeAccepted("no answer")])
def test_what_slack_did_not_take_is_told(error: Exception) -> None:
    def post(text: str, key: str, limit: timedelta) -> str:
        raise error

    chain = PagerChain([SlackMention(name="slack", post=post)], CLOCK)
    (receipt,) = chain.send(PAGE, deadline=LIMIT)
    assert (receipt.accepted, receipt.detail) == (False, str(error))
    assert receipt.unknown is isinstance(error, MaybeAccepted)
