"""One actor cannot fill the ledger with refusals, and nothing about them is hidden."""

import pytest

from audit_log.gate import Gate, Question
from audit_log.ledger import Ledger
from audit_log.records import EventKind, Record
from audit_log.refusal_limit import MOST
from config.actors import Actor, ActorKind, Door
from config.clock import microseconds
from config.ids import ActorId, ClusterName
from config.node_names import NodeSet
from config.permissions import Permission, Role, Target
from tests.audit_log.ledgers import START, HandClock

MANY = 10 * MOST


@pytest.fixture
def gate(ledger: Ledger, clock: HandClock) -> Gate:
    none: dict[str, Role] = {}
    return Gate(ledger, clock, lambda: none, lambda actor: None)


def person(number: int) -> Actor:
    return Actor(
        id=ActorId(f"p-{number}"), kind=ActorKind.PERSON, name=f"P{number}", roles=frozenset()
    )


EVE = person(1)


def drain(gate: Gate, number: int, actor: Actor = EVE) -> None:
    """A denial like no other: of another node each time."""
    target = Target(cluster=ClusterName("c1"), nodes=NodeSet.of([f"gpu-{number:03d}"]))
    gate.check(
        Question(actor=actor, permission=Permission.NODE_DRAIN, target=target, door=Door.SLACK)
    )


def refusals(ledger: Ledger) -> list[Record]:
    kinds = {EventKind.REQUEST_DENIED, EventKind.REQUEST_REFUSED}
    return [record for record in ledger.records() if record.event.kind in kinds]


def test_many_refusals_of_one_actor_become_one_record_that_says_how_many_and_of_what(
    ledger: Ledger, gate: Gate, clock: HandClock
) -> None:
    for number in range(MANY):
        gate.refuse(EVE, Door.CLI, "run" if number % 2 else "drain", f"there is no node n{number}")
    assert len(refusals(ledger)) == MOST
    clock.move(61)
    gate.flush()
    *_, summed = refusals(ledger)
    assert len(refusals(ledger)) == MOST + 1
    rest = MANY - MOST
    assert summed.event.actor == EVE.id
    assert summed.event.data == {
        "count": rest,
        "of": {"refused drain": rest // 2, "refused run": rest // 2},
        "doors": ["cli"],
        "first_us": microseconds(START),
        "last_us": microseconds(START),
        "why": f"{rest} refusals beyond {MOST} within a minute: "
        f"{rest // 2} refused drain, {rest // 2} refused run",
    }


def test_denials_that_differ_each_time_are_limited_in_the_same_count(
    ledger: Ledger, gate: Gate
) -> None:
    for number in range(MOST):
        drain(gate, number)
    gate.refuse(EVE, Door.CLI, "run", "no such runbook")
    drain(gate, MOST)
    assert len(refusals(ledger)) == MOST
    gate.close()
    assert refusals(ledger)[-1].event.data["of"] == {"denied node.drain": 1, "refused run": 1}


def test_every_refusal_is_in_the_ledger_as_a_record_or_in_a_count(
    ledger: Ledger, gate: Gate, clock: HandClock
) -> None:
    for number in range(MANY):
        drain(gate, number % 70)
        gate.refuse(EVE, Door.SLACK, "halt", "no room")
        clock.move(1)
        gate.flush()
    gate.close()
    told = [record.event.data.get("count", 1) for record in refusals(ledger)]
    assert sum(told) == 2 * MANY  # type: ignore[arg-type]


def test_others_are_recorded_one_by_one_while_one_actor_is_only_counted(
    ledger: Ledger, gate: Gate
) -> None:
    for number in range(MANY):
        drain(gate, number)
    assert gate.crowded(EVE)
    drain(gate, 7, person(2))
    assert not gate.crowded(person(2))
    assert refusals(ledger)[-1].event.actor == "p-2"


def test_after_a_minute_refusals_are_recorded_one_by_one_again(
    ledger: Ledger, gate: Gate, clock: HandClock
) -> None:
    for number in range(MANY):
        drain(gate, number)
    clock.move(61)
    gate.flush()
    assert not gate.crowded(EVE)
    before = len(refusals(ledger))
    drain(gate, 999)
    assert len(refusals(ledger)) == before + 1


def test_what_is_summed_holds_no_word_that_the_sender_chose(ledger: Ledger, gate: Gate) -> None:
    for number in range(MANY):
        gate.refuse(EVE, Door.CLI, "run", f"there is no runbook canary-{number}")
    gate.close()
    assert "canary" not in str(refusals(ledger)[-1].event.data)
