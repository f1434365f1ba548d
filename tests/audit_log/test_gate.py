import threading

import pytest

from audit_log.gate import MOST_OPEN, Gate, Question
from audit_log.ledger import Ledger
from audit_log.records import EventKind, Record
from audit_log.refusal_limit import MOST
from config.actors import Actor, ActorKind, Door
from config.clock import microseconds
from config.ids import ActorId, ClusterName, RunId
from config.node_names import NodeSet
from config.permissions import Allowed, Denied, Grant, Permission, Role, Target
from tests.audit_log.ledgers import START, HandClock

ONCALL = Role(name="oncall", grants=(Grant(permissions=frozenset({Permission.NODE_DRAIN})),))


@pytest.fixture
def roles() -> dict[str, Role]:
    return {"oncall": ONCALL}


@pytest.fixture
def gate(ledger: Ledger, clock: HandClock, roles: dict[str, Role]) -> Gate:
    return Gate(ledger, clock, lambda: roles, lambda actor: None)


def question(
    *roles: str, node: str = "gpu-017", run: str | None = None, person: int = 1
) -> Question:
    return Question(
        actor=Actor(
            id=ActorId(f"p-{person}"), kind=ActorKind.PERSON, name="Ann", roles=frozenset(roles)
        ),
        permission=Permission.NODE_DRAIN,
        target=Target(cluster=ClusterName("c1"), nodes=NodeSet.of([node])),
        door=Door.SLACK,
        run=RunId(run) if run else None,
    )


def denials(ledger: Ledger) -> list[Record]:
    return [r for r in ledger.records() if r.event.kind is EventKind.REQUEST_DENIED]


def counts(ledger: Ledger) -> list[object]:
    return [record.event.data["count"] for record in denials(ledger)]


def test_what_is_allowed_leaves_no_record_of_its_own(ledger: Ledger, gate: Gate) -> None:
    assert isinstance(gate.check(question("oncall")), Allowed)
    gate.close()
    assert denials(ledger) == []


def test_a_denial_is_recorded_before_it_is_told(ledger: Ledger, gate: Gate) -> None:
    decision = gate.check(question("viewer", run="run-4"))
    assert isinstance(decision, Denied)
    (record,) = denials(ledger)
    assert record.event.actor == "p-1"
    assert record.event.node == "gpu-017"
    assert record.event.run == "run-4"
    assert record.event.data == {
        "because": decision.because,
        "count": 1,
        "door": "slack",
        "enough": ["oncall"],
        "nodes": "gpu-017",
        "permission": "node.drain",
    }


def test_asking_what_would_be_allowed_is_not_recorded(ledger: Ledger, gate: Gate) -> None:
    assert isinstance(gate.decide(question()), Denied)
    gate.close()
    assert denials(ledger) == []


def test_equal_denials_within_a_minute_become_one_record_with_their_count(
    ledger: Ledger, gate: Gate, clock: HandClock
) -> None:
    for _ in range(1000):
        gate.check(question())
        clock.move(0.05)
    assert counts(ledger) == [1]
    gate.flush()
    assert counts(ledger) == [1]
    clock.move(10)
    gate.flush()
    assert counts(ledger) == [1, 999]
    data = denials(ledger)[1].event.data
    assert data["first_us"] == microseconds(START) + 50_000
    assert data["last_us"] == microseconds(START) + 999 * 50_000
    clock.move(600)
    gate.flush()
    gate.close()
    assert counts(ledger) == [1, 999]


def test_after_a_minute_an_equal_denial_is_recorded_at_once_again(
    ledger: Ledger, gate: Gate, clock: HandClock
) -> None:
    gate.check(question())
    gate.check(question())
    clock.move(61)
    gate.check(question())
    assert counts(ledger) == [1, 1, 1]
    assert sum(count for count in counts(ledger) if isinstance(count, int)) == 3


def test_no_count_is_lost_at_shutdown(ledger: Ledger, gate: Gate) -> None:
    for _ in range(7):
        gate.check(question())
    gate.close()
    assert counts(ledger) == [1, 6]


def test_denials_that_differ_are_recorded_each(ledger: Ledger, gate: Gate) -> None:
    for asked in (question(), question(node="gpu-018"), question(run="run-1")):
        gate.check(asked)
    assert counts(ledger) == [1, 1, 1]


def test_a_wall_clock_that_is_set_back_does_not_hold_counts(
    ledger: Ledger, gate: Gate, clock: HandClock
) -> None:
    gate.check(question())
    gate.check(question())
    clock.shift -= clock.passed
    clock.move(61)
    gate.flush()
    assert counts(ledger) == [1, 1]


def test_asked_again_when_acting_a_revoked_role_denies(
    ledger: Ledger, gate: Gate, roles: dict[str, Role]
) -> None:
    assert isinstance(gate.check(question("oncall")), Allowed)
    del roles["oncall"]
    assert isinstance(gate.check(question("oncall", run="run-1")), Denied)
    assert [record.event.run for record in denials(ledger)] == ["run-1"]


def test_counts_from_many_threads_add_up(ledger: Ledger, gate: Gate) -> None:
    threads = [
        threading.Thread(target=lambda: [gate.check(question()) for _ in range(50)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gate.close()
    assert counts(ledger) == [1, 399]


def test_many_different_denials_do_not_fill_the_memory_and_lose_no_count(
    ledger: Ledger, gate: Gate
) -> None:
    for number in range(MOST_OPEN + 20):
        gate.check(question(node=f"gpu-{number}", person=number // MOST))
        gate.check(question(node=f"gpu-{number}", person=number // MOST))
    assert len(gate._open) <= MOST_OPEN
    gate.close()
    assert counts(ledger).count(1) == 2 * (MOST_OPEN + 20)
