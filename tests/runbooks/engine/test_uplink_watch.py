"""A bot that reaches none of its reference hosts wakes somebody once, and says when it is back."""

from pathlib import Path

import pytest

from actions.vantage import References
from runbooks.uplink_watch import UplinkWatch
from tests.runbooks.engine.lamps import CLUSTER, LIGHT, Bench

CUT, HALF, WHOLE, NONE_NAMED = (
    References(reached=reached, named=named) for reached, named in ((0, 3), (1, 3), (3, 3), (0, 0))
)


class Uplink:
    """The watch, and what it finds next."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.found = WHOLE
        self.asked = 0
        self.watch = UplinkWatch(bench.ledger, bench.clock, {CLUSTER: self._references})

    def _references(self) -> References:
        self.asked += 1
        return self.found

    def turns(self, found: References, count: int = 1) -> None:
        self.found = found
        for _ in range(count):
            self.bench.clock.forward(seconds=31)
            self.watch.tick()

    def open_pages(self) -> list[str]:
        rows = self.bench.ledger.query("SELECT summary FROM pages WHERE resolved = 0")
        return [row[0] for row in rows if "cut off" in row[0]]


@pytest.fixture
def uplink(tmp_path: Path) -> Uplink:
    return Uplink(Bench(tmp_path, {"light": LIGHT}))


def test_a_bot_that_stays_cut_off_is_one_page(uplink: Uplink) -> None:
    uplink.turns(CUT, 20)
    (said,) = uplink.open_pages()
    assert "none of its 3 reference hosts" in said


def test_one_bad_moment_wakes_nobody(uplink: Uplink) -> None:
    for _ in range(5):
        uplink.turns(CUT)
        uplink.turns(WHOLE)
    assert uplink.open_pages() == []


@pytest.mark.parametrize("found", [HALF, NONE_NAMED])
def test_a_bot_that_reaches_something_or_named_nothing_is_not_cut_off(
    uplink: Uplink, found: References
) -> None:
    uplink.turns(found, 5)
    assert uplink.open_pages() == []


def test_the_page_ends_when_a_host_answers_again(uplink: Uplink) -> None:
    uplink.turns(CUT, 3)
    uplink.turns(HALF)
    assert uplink.open_pages() == []
    assert any("again" in said for said in uplink.bench.pages())


def test_hosts_are_not_tried_more_often_than_every_half_minute(uplink: Uplink) -> None:
    for _ in range(10):
        uplink.watch.tick()
    assert uplink.asked == 1
