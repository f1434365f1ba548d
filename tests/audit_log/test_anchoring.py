"""A sink that hangs or fails holds up nobody, is said, and is told to a person when it lasts."""

import threading
from collections.abc import Iterator

import pytest

from audit_log import anchoring as module
from audit_log.anchoring import PAGED_AFTER, Anchoring
from audit_log.anchors import Anchor
from audit_log.ledger import Ledger
from audit_log.records import EventKind
from tests.audit_log.ledgers import HandClock, append, event
from tests.audit_log.test_anchors import Sink
from tests.patience import DEADLINE, until


class DeadMount:
    """Takes an anchor and does not come back before it may."""

    name = "mount"
    leaves_host = False

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.back = threading.Event()

    def send(self, anchor: Anchor) -> None:
        self.asked.append(anchor.seq)
        assert self.back.wait(DEADLINE)


@pytest.fixture
def mount(monkeypatch: pytest.MonkeyPatch) -> Iterator[DeadMount]:
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    dead = DeadMount()
    yield dead
    dead.back.set()


def works(ledger: Ledger) -> list[object]:
    """What is recorded of the sinks: whether each works."""
    return [
        record.event.data["works"]
        for record in ledger.records()
        if record.event.kind is EventKind.ANCHORED
    ]


def test_a_sink_that_hangs_keeps_no_anchor_from_the_others(
    ledger: Ledger, clock: HandClock, mount: DeadMount
) -> None:
    good = Sink()
    anchoring = Anchoring(ledger, clock, [mount, good])
    status = anchoring.anchor_now()
    assert status.newest is not None
    assert status.failing == ("mount: no answer within 0 s",)
    append(ledger, event())
    anchoring.anchor_now()
    assert len(good.anchors) == 2
    assert len(mount.asked) == 1, "it is not asked again while it hangs"
    assert works(ledger) == [False]


def test_a_sink_that_comes_back_is_working_again(
    ledger: Ledger, clock: HandClock, mount: DeadMount
) -> None:
    anchoring = Anchoring(ledger, clock, [mount])
    anchoring.anchor_now()
    mount.back.set()
    until(lambda: not anchoring.status().failing)
    assert works(ledger) == [False, True]
    assert anchoring.status().newest is not None


def test_the_end_of_a_run_waits_for_no_sink_that_is_known_to_be_in_trouble(
    ledger: Ledger, clock: HandClock, mount: DeadMount
) -> None:
    anchoring = Anchoring(ledger, clock, [mount])
    anchoring.anchor_now()
    append(ledger, event())
    mount.back.clear()
    anchoring.before_end()
    assert len(mount.asked) == 1


def test_before_an_end_everything_recorded_so_far_is_anchored_once(
    ledger: Ledger, clock: HandClock
) -> None:
    sink = Sink()
    anchoring = Anchoring(ledger, clock, [sink])
    append(ledger, event())
    anchoring.before_end()
    assert [anchor.seq for anchor in sink.anchors] == [ledger.head.seq]
    anchoring.before_end()
    assert len(sink.anchors) == 1


def test_trouble_that_lasts_is_told_once_and_its_end_once(ledger: Ledger, clock: HandClock) -> None:
    sink = Sink()
    sink.trouble = "stale file handle"
    told: list[tuple[str, str]] = []
    anchoring = Anchoring(ledger, clock, [sink])
    anchoring.tell = lambda name, problem: told.append((name, problem))
    clock.move(60)
    anchoring.tick()
    assert told == []
    for _ in range(3):
        clock.move(PAGED_AFTER.total_seconds())
        anchoring.tick()
    assert told == [("memory", "stale file handle")]
    sink.trouble = ""
    clock.move(60)
    anchoring.tick()
    assert told == [("memory", "stale file handle"), ("memory", "")]


def test_a_fault_of_a_sink_is_no_anchor(ledger: Ledger, clock: HandClock) -> None:
    class Faulty(Sink):
        def send(self, anchor: Anchor) -> None:
            raise KeyError("bucket")

    status = Anchoring(ledger, clock, [Faulty()]).anchor_now()
    assert status.newest is None
    assert status.failing == ("memory: KeyError in its own code",)


def test_a_sink_for_which_no_thread_is_left_is_said_and_asked_the_next_time(
    ledger: Ledger, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = Sink()
    anchoring = Anchoring(ledger, clock, [sink])

    def none_is_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as crowded:
        crowded.setattr(threading.Thread, "start", none_is_left)
        status = anchoring.anchor_now()
    assert status.failing == (f"{sink.name}: can't start new thread",)
    anchoring.anchor_now()
    assert len(sink.anchors) == 1
    assert works(ledger) == [False, True]
