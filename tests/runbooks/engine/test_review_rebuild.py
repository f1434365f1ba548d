"""Whatever happened to runs, pages and clocks, the tables made again from the records are the same."""

from datetime import timedelta
from pathlib import Path

from actions.hands import Page, PageReceipt
from audit_log.rebuild import rebuild
from audit_log.records import Event, EventKind
from config.actors import ENGINE, Door
from runbooks.machine import Move, RunState
from runbooks.paging import Paging
from tests.runbooks.engine.lamps import ANN, BOB, CLUSTER, Bench
from tests.runbooks.engine.test_review_agreement import BOOKS as ASKING
from tests.runbooks.engine.test_review_agreement import loss
from tests.runbooks.engine.test_review_stops import BOOKS as STOPPING


class Refuses:
    def send(self, page: Page, *, deadline: timedelta) -> tuple[PageReceipt, ...]:
        return (PageReceipt(backend="desk", accepted=False, detail="away"),)


def test_the_tables_are_the_same_after_a_rebuild(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {**ASKING, **STOPPING})
    turned = bench.go(bench.ask("row", nodes=["l1"]))
    bench.requests.deny(turned.id, None, BOB, "bob: no")
    bench.world.owner["l1"] = "dan"
    assert bench.go(turned.id).state is RunState.NEEDS_PERSON
    called = bench.go(bench.ask("outmost", node="l2"))
    bench.requests.stop(called.id, Move.WANT_PAUSE, ANN, "ann: wait")
    bench.go(called.id)
    bench.world.jobs["l3"] = (loss(7),)
    asked = bench.go(bench.ask("calls", node="l3"))
    bench.requests.approve(asked.id, None, BOB, Door.CLI)
    bench.world.jobs["l3"] = (loss(7), loss(8))
    bench.go(asked.id)
    paging = Paging(bench.ledger, Refuses(), bench.clock)
    paging.tick()
    paging.close()
    bench.clock.jump(timedelta(hours=1))
    data = {"by_us": 3_600_000_000}
    event = Event(kind=EventKind.CLOCK_JUMPED, actor=ENGINE.id, data=data)
    bench.ledger.commit(lambda transaction: transaction.append(event))
    paging = Paging(bench.ledger, Refuses(), bench.clock)
    bench.clock.forward(minutes=5)
    paging.tick()
    paging.close()
    bench.requests.hands_off(CLUSTER, (), ANN.id, "ann: firmware")
    bench.requests.resume(turned.id, ANN, "ann: dan keeps it", True)
    bench.requests.stop(called.id, Move.WANT_ABORT, ANN, "ann: enough")
    bench.go(turned.id)
    assert rebuild(bench.ledger).differing == ()
