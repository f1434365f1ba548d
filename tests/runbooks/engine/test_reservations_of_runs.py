"""Runs and their reservations: whose mark it is, what becomes of one that is gone, who hears of one left."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from actions.cluster import NodeBase, Snapshot
from actions.contract import Action
from actions.reservation.settings import Hands, ReservationSettings
from actions.reservation.verbs import actions
from audit_log.rebuild import rebuild
from audit_log.records import EventKind
from bot.left_marks import LeftMarks
from config.clock import Instant
from config.ids import ClusterName, RunId
from config.json_values import JsonMap
from config.node_names import NodeName
from runbooks.machine import RunState
from runbooks.open_marks import marks_on
from runbooks.reservation_watch import ReservationWatch
from tests.actions.fakes import NOW, FakeCluster, make_node
from tests.actions.reservation.hands import ONE, FakeJobs, nodes, reservation
from tests.runbooks.engine import lamps
from tests.runbooks.engine.lamp_world import Lamps, lamp_actions
from tests.runbooks.engine.lamps import CLUSTER, Bench

HOLD = """\
runbook: hold
version: 1
title: Keep two nodes
permission: reservation.hold
parameters:
  name: {type: text, help: name}
steps:
  - id: keep
    do: reservation.hold
    with: {name: "{{ name }}", nodes: [gpu-01, gpu-02], user: ann, length: 1h}
  - id: wait
    do: lamp.read
    with: {node: l1}
  - id: light
    do: lamp.on
    with: {node: l1}
on_failure: undo
"""
CALLER = """\
runbook: caller
version: 1
title: Keep two nodes through a call
permission: reservation.hold
parameters:
  name: {type: text, help: name}
steps:
  - id: inner
    call: hold
    with: {name: "{{ name }}"}
  - id: light
    do: lamp.on
    with: {node: l2}
on_failure: undo
"""


class Ground(Bench):
    """The bench, with a cluster whose reservations its runs write."""

    def __init__(self, folder: Path) -> None:
        self.cluster = FakeCluster(nodes=nodes())
        self.jobs = FakeJobs(self.cluster)
        super().__init__(folder, {"hold": HOLD, "caller": CALLER})
        self.clock.instant = Instant(wall=NOW, monotonic=timedelta(days=1))
        self.watch = self.watching()
        self.left = LeftMarks(self.ledger, lambda: (CLUSTER,), self.snapshot)

    def open(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lamps, "lamp_actions", self.verbs)
            super().open()

    def verbs(self, world: Lamps) -> dict[str, Action]:
        hands = Hands(
            clusters={CLUSTER: self.cluster},
            jobs={CLUSTER: self.jobs},
            settings=ReservationSettings(hands_off=lambda *_: ""),
        )
        return {**lamp_actions(world), **{verb.spec.name: verb for verb in actions(hands)}}

    def watching(self) -> ReservationWatch:
        return ReservationWatch(self.ledger, self.clock, self.snapshot, (CLUSTER,))

    def snapshot(self, _name: ClusterName) -> Snapshot:
        seen = replace(self.cluster.snapshot(), cluster=CLUSTER, taken_at=self.clock.now().wall)
        return replace(seen, controller=replace(seen.controller, cluster=CLUSTER))

    def name(self, run: int = 1) -> str:
        return f"nw-run-{run}-ground-{self.ledger.instance}"

    def there(self) -> list[str]:
        return [found.name for found in self.cluster.reservations]

    def lost(self) -> list[object]:
        return [
            record.event.data
            for record in self.ledger.records()
            if record.event.kind is EventKind.MARK_LOST
        ]

    def finished(self, run: RunId) -> list[JsonMap]:
        return [
            record.event.data
            for record in self.ledger.records(run=run)
            if record.event.kind is EventKind.STEP_FINISHED
        ]

    def watch_later(self) -> None:
        self.clock.forward(minutes=2)
        self.watch.tick()


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    bench = Ground(tmp_path)
    yield bench
    bench.ledger.close()


def test_a_reservation_carries_the_mark_of_its_run(ground: Ground) -> None:
    run = ground.go(ground.ask("hold", name=ground.name()))
    assert run.state is RunState.SUCCEEDED
    assert (ground.name(), "run-1") in ground.marks()
    (mark,) = [one for one in marks_on(ground.ledger.query, CLUSTER, (ONE,)) if one.node != ONE]
    assert mark.text.startswith("gpu-[01-02] for ann until ")


def test_a_called_run_writes_in_the_name_of_its_caller(ground: Ground) -> None:
    run = ground.go(ground.ask("caller", name=ground.name()))
    assert run.state is RunState.SUCCEEDED
    assert (ground.name(), "run-1") in ground.marks()
    rebuild(ground.ledger)
    assert (ground.name(), "run-1") in ground.marks()


def test_the_caller_takes_back_what_was_written_in_its_name(ground: Ground) -> None:
    ground.world.answers.extend(["", "refuse"])
    run = ground.go(ground.ask("caller", name=ground.name()))
    assert run.state is RunState.UNDONE
    assert ground.there() == []
    assert ground.marks() == []


def test_what_failed_later_takes_the_reservation_away_again(ground: Ground) -> None:
    ground.world.answers.append("refuse")
    run = ground.go(ground.ask("hold", name=ground.name()))
    assert run.state is RunState.UNDONE
    assert ground.there() == []
    assert ground.marks() == []


def test_while_a_job_points_to_it_its_end_is_tried_again(ground: Ground) -> None:
    ground.world.answers.append("refuse")
    ground.jobs.delete_refused = 1
    run = ground.go(ground.ask("hold", name=ground.name()))
    tries = [data for data in ground.finished(run.id) if data["key"] == "keep"]
    assert [data["outcome"] for data in tries] == ["done", "again", "undone"]
    assert "in use" in str(tries[1]["why"])
    assert ground.there() == []


@pytest.mark.parametrize(
    ("later", "restarted", "words"),
    [
        (timedelta(minutes=2), False, "somebody else deleted it"),
        (timedelta(minutes=2), True, "may have forgotten it"),
        (timedelta(hours=2), True, "came to its end"),
    ],
)
def test_one_that_is_gone_is_recorded_once_and_its_mark_with_it(
    later: timedelta, restarted: bool, words: str, ground: Ground
) -> None:
    ground.go(ground.ask("hold", name=ground.name()))
    ground.watch_later()
    assert ground.lost() == []
    ground.cluster.reservations = ()
    ground.clock.forward(seconds=later.total_seconds())
    if restarted:
        ground.cluster.started = ground.clock.now().wall - timedelta(seconds=90)
    ground.watch.tick()
    ground.watch.tick()
    (lost,) = ground.lost()
    assert words in str(lost)
    assert (ground.name(), "run-1") not in ground.marks()
    assert ground.pages() == []


def test_one_that_was_just_made_is_not_missed(ground: Ground) -> None:
    ground.go(ground.ask("hold", name=ground.name()))
    ground.cluster.reservations = ()
    ground.clock.forward(seconds=20)
    ground.watch.tick()
    assert ground.lost() == []


def test_what_a_run_is_just_writing_is_left_to_it(ground: Ground) -> None:
    def between() -> None:
        ground.cluster.reservations = ()
        ground.clock.forward(minutes=5)
        ground.watch.tick()

    ground.jobs.before_write = between
    ground.go(ground.ask("hold", name=ground.name()))
    assert ground.lost() == []


def left_behind(ground: Ground) -> RunId:
    """A run that cannot take its reservation away, and that somebody gives up."""
    ground.world.answers.append("refuse")
    ground.jobs.delete_refused = 100
    run = ground.ask("hold", name=ground.name())
    for _ in range(30):
        ground.clock.forward(minutes=5)
        if ground.go(run).state is RunState.NEEDS_PERSON:
            break
    ground.requests.give_up(run, lamps.ANN, "by hand")
    return run


def test_one_that_its_run_left_is_paged_once_and_listed(ground: Ground) -> None:
    run = left_behind(ground)
    assert not ground.run(run).open
    before = len(ground.pages())
    for _ in range(3):
        ground.watch_later()
    told = [page for page in ground.pages() if "was left by run-1" in page]
    assert (len(told), len(ground.pages())) == (1, before + 1)
    (line,) = ground.left.lines()
    assert f"scontrol delete ReservationName={ground.name()}" in line
    assert not ground.left.findings()[0].good
    ground.cluster.reservations = ()
    ground.watch_later()
    assert ground.left.lines() == ()
    assert ground.ledger.query("SELECT resolved FROM pages WHERE key LIKE '%/reservation/%'") == [
        (1,)
    ]


def test_one_that_its_run_meant_to_leave_pages_nobody(ground: Ground) -> None:
    run = ground.go(ground.ask("hold", name=ground.name()))
    ground.watch_later()
    assert (run.state, ground.pages(), ground.left.lines()) == (RunState.SUCCEEDED, [], ())


def test_one_that_was_deleted_and_is_there_again_is_told_once(ground: Ground) -> None:
    ground.world.answers.append("refuse")
    run = ground.go(ground.ask("hold", name=ground.name()))
    assert run.state is RunState.UNDONE
    told = ground.pages()
    ground.cluster.reservations = (reservation(name=ground.name()),)
    ground.watch_later()
    assert ground.pages() == told
    ground.cluster.started = ground.clock.now().wall - timedelta(seconds=90)
    ground.watch.tick()
    ground.watch.tick()
    (page,) = [page for page in ground.pages() if page not in told]
    assert "is there again" in str(page)
    assert ground.there() == [ground.name()]


def test_marks_of_our_name_that_the_ledger_does_not_know_are_listed_and_left(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    instance = ground.ledger.instance
    ground.cluster.reservations = (
        reservation(name=ground.name(33)),
        reservation(name="nw-run-34-ground-ffffffff"),
        reservation(name="drv580"),
    )
    ground.cluster.nodes[ONE] = make_node(
        flags=frozenset({"DRAIN"}), base=NodeBase.IDLE, reason=f"nw A1 [run-35/{instance}]"
    )
    ground.watch_later()
    lines = ground.left.lines()
    assert [line.split(" carries")[0] for line in lines] == [
        f"lab: reservation {ground.name(33)}",
        f"lab: drain {ONE}",
    ]
    assert ground.name(33) in caplog.text
    assert ground.jobs.written == []
    assert NodeName(ONE) in ground.cluster.nodes
