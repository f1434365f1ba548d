"""A duty that hangs holds up nothing but itself: runs and other duties go on, and it is told once."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from config.steady_clock import SteadyClock
from runbooks.duties import Duties, Duty
from runbooks.machine import RunState
from runbooks.worker import Worker
from tests.bot.whole import whole
from tests.patience import DEADLINE, until
from tests.runbooks.engine.lamps import LIGHT, Bench


class Mount:
    """A mount that is dead until it is back."""

    def __init__(self) -> None:
        self.touched = threading.Event()
        self.back = threading.Event()
        self.turns = 0

    def touch(self) -> None:
        self.turns += 1
        self.touched.set()
        assert self.back.wait(DEADLINE)


class Counter:
    """A duty that does what it should."""

    def __init__(self) -> None:
        self.turns = 0

    def turn(self) -> None:
        self.turns += 1


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, {"light": LIGHT})


@pytest.fixture
def mount() -> Iterator[Mount]:
    dead = Mount()
    yield dead
    dead.back.set()


@contextmanager
def worker(bench: Bench, *duties: Duty) -> Iterator[tuple[Worker, Duties]]:
    """A worker with these duties, which ends whatever they do."""
    all_of_them = Duties(duties, bench.ledger, bench.clock)
    made = Worker(bench.parts, bench.engine, SteadyClock(bench.clock), all_of_them)
    made.start()
    try:
        yield made, all_of_them
    finally:
        made.stop()


def page_states(bench: Bench) -> list[tuple[str, int]]:
    return [
        (row[0], row[1])
        for row in bench.ledger.query("SELECT summary, resolved FROM pages ORDER BY at_us")
    ]


def turned(counter: Counter, made: Worker, more: int = 2) -> Callable[[], bool]:
    """Whether it has had so many turns more; each look is news."""
    wanted = counter.turns + more

    def look() -> bool:
        made.wake()
        return counter.turns >= wanted

    return look


def test_runs_and_other_duties_go_on_while_one_hangs(bench: Bench, mount: Mount) -> None:
    other = Counter()
    anchors = Duty("anchoring", mount.touch)
    with worker(bench, anchors, Duty("counting", other.turn)) as (made, _):
        assert mount.touched.wait(DEADLINE)
        run = bench.ask("light", node="l1")
        made.changed(run)
        until(lambda: bench.run(run).state is RunState.SUCCEEDED)
        until(turned(other, made))
        mount.back.set()
    assert mount.turns >= 1


def test_it_is_said_and_paged_once_and_the_page_is_over_when_it_is(
    bench: Bench, mount: Mount
) -> None:
    with worker(bench, Duty("anchoring", mount.touch)) as (made, duties):
        assert mount.touched.wait(DEADLINE)
        assert duties.hanging() == ()
        bench.clock.forward(minutes=2)
        made.wake()
        until(lambda: page_states(bench))
        assert "anchoring hangs since 2 min" in duties.hanging()[0]
        bench.clock.forward(minutes=2)
        duties.watch()
        records = [record.event.kind for record in bench.ledger.records()]
        assert records.count("page.intended") == 1  # type: ignore[arg-type]
        assert page_states(bench)[0][1] == 0
        mount.back.set()

        def over() -> bool:
            made.wake()
            return page_states(bench) == [("nodewarden: anchoring goes on again", 1)]

        until(over)
        assert duties.hanging() == ()


def test_a_page_of_an_earlier_process_is_not_sent_again_and_ends_with_the_first_turn(
    bench: Bench, mount: Mount
) -> None:
    first = Duties((Duty("anchoring", mount.touch),), bench.ledger, bench.clock)
    first.start()
    first.wake()
    assert mount.touched.wait(DEADLINE)
    bench.clock.forward(minutes=2)
    first.watch()
    mount.back.set()
    first.stop()
    bench.restart()
    fine = Counter()
    again = Duties((Duty("anchoring", fine.turn),), bench.ledger, bench.clock)
    again.watch()
    assert page_states(bench)[0][1] == 0
    again.start()
    again.wake()

    def over() -> bool:
        again.watch()
        return page_states(bench)[0][1] == 1

    until(over)
    again.stop()


def test_a_duty_that_fails_has_its_next_turn(bench: Bench) -> None:
    turns = Counter()

    def fails() -> None:
        turns.turn()
        raise OSError("stale file handle")

    with worker(bench, Duty("anchoring", fails)) as (made, _):
        until(turned(turns, made, 3))


def test_a_bot_ends_though_a_duty_hangs(
    bench: Bench, mount: Mount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runbooks.duties.LAST_TURN", 0.0)
    with worker(bench, Duty("anchoring", mount.touch)):
        assert mount.touched.wait(DEADLINE)
    assert not mount.back.is_set()


def test_status_and_doctor_say_it(tmp_path: Path) -> None:
    with whole(tmp_path) as site:
        duties = site.bot.worker._duties
        assert duties is not None
        post = next(one for one in duties._posts if one.duty.name.startswith("anchoring"))
        post.since = site.bot.parts.clock.now().monotonic - timedelta(minutes=3)
        said = "anchoring the audit log hangs since 3 min; runs go on without it"
        assert said in site.told("ann", "status")
        assert f"BAD {said}" in site.told("ann", "doctor")
