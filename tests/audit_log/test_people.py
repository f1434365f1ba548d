import re
from pathlib import Path

import pytest

from audit_log.ledger import Ledger
from audit_log.people import IdentityTaken, People
from audit_log.verify import verify
from config.actors import Identity
from tests.audit_log.ledgers import append, event

SLACK = Identity(door="slack", subject="T1/U1")
OS = Identity(door="os", subject="1000")
OTHER = Identity(door="slack", subject="T1/U2")


def test_a_person_gets_one_opaque_id_for_all_identities(ledger: Ledger) -> None:
    people = People(ledger)
    ann = people.ensure("Ann", [SLACK, OS])
    assert re.fullmatch(r"p-[0-9a-f]{10}", ann)
    assert people.find(SLACK) == people.find(OS) == ann
    assert people.identities(ann) == (OS, SLACK)
    assert people.name(ann) == "Ann"
    assert people.find(OTHER) is None


def test_the_same_person_keeps_the_id_and_gains_identities(ledger: Ledger) -> None:
    people = People(ledger)
    ann = people.ensure("Ann", [SLACK])
    assert people.ensure("Ann B.", [OS, SLACK]) == ann
    assert people.find(OS) == ann
    assert people.name(ann) == "Ann B."


def test_different_people_have_different_ids(ledger: Ledger) -> None:
    people = People(ledger)
    assert people.ensure("Ann", [SLACK]) != people.ensure("Ann", [OTHER])


def test_two_people_never_become_one(ledger: Ledger) -> None:
    people = People(ledger)
    ann, bob = people.ensure("Ann", [SLACK]), people.ensure("Bob", [OS])
    with pytest.raises(IdentityTaken, match="belong to 2 people"):
        people.ensure("Ann", [SLACK, OS])
    assert people.find(SLACK) == ann
    assert people.find(OS) == bob
    assert people.name(bob) == "Bob"


def test_a_cleared_person_is_gone_and_the_chain_is_untouched(ledger: Ledger, path: Path) -> None:
    people = People(ledger)
    ann = people.ensure("Ann Uniquename", [SLACK, OS])
    append(ledger, event(actor=ann))
    assert people.clear(ann)
    assert not people.clear(ann)
    assert people.find(SLACK) is None
    assert people.identities(ann) == ()
    assert people.name(ann) == ann
    assert people.ensure("Ann", [SLACK]) != ann
    (record,) = ledger.records(after=1)
    assert record.event.actor == ann
    assert verify(path).sound


def test_names_and_identities_never_stand_in_the_chain(ledger: Ledger) -> None:
    people = People(ledger)
    ann = people.ensure("Ann Uniquename", [SLACK])
    append(ledger, event(actor=ann))
    stored = "".join(text for (text,) in ledger.query("SELECT record FROM ledger"))
    assert "Uniquename" not in stored
    assert "T1/U1" not in stored
