"""Persons are found by each identity, and hold the roles of their groups."""

from config.actors import ActorKind, Identity
from config.people import Directory
from config.settings import Group, MachineActor, Person, Settings


def directory() -> Directory:
    settings = Settings.model_construct(
        people={
            "ann": Person(slack=("T1/U1", "T2/U9"), os_users=("ann", "1000"), roles=("viewer",)),
            "ben": Person(slack=("T1/U2",), slack_groups=("S1",)),
            "desk": Person(os_users=("root",), shared=True),
        },
        groups={"S1": Group(roles=("oncall",)), "S2": Group(roles=("admin", "viewer"))},
        schedules={"nightly": MachineActor(owner="ann", roles=("viewer",))},
        alert_sources={"nightly": MachineActor(owner="ben", roles=("oncall",))},
    )
    return Directory(settings)


def test_each_identity_leads_to_the_same_person() -> None:
    found = [
        directory().by_identity(Identity(door=door, subject=subject))
        for door, subject in [("slack", "T1/U1"), ("slack", "T2/U9"), ("os", "ann"), ("os", "1000")]
    ]
    assert {person and person.name for person in found} == {"ann"}


def test_an_identity_of_another_door_or_workspace_is_nobody() -> None:
    for door, subject in [("os", "T1/U1"), ("slack", "ann"), ("slack", "T2/U1"), ("slack", "U1")]:
        assert directory().by_identity(Identity(door=door, subject=subject)) is None


def test_roles_come_directly_and_through_groups() -> None:
    people = directory()
    ann, ben = people.by_name("ann"), people.by_name("ben")
    assert ann is not None
    assert ben is not None
    assert people.roles(ann) == {"viewer"}
    assert people.roles(ann, ["S1", "S2", "S-unknown"]) == {"viewer", "oncall", "admin"}
    assert people.roles(ben) == {"oncall"}, "configured membership holds when Slack is not asked"


def test_a_shared_account_is_marked() -> None:
    assert [person.name for person in directory().everybody() if person.shared] == ["desk"]


def test_a_schedule_and_an_alert_source_of_one_name_are_two_actors() -> None:
    people = directory()
    schedule = people.machine(ActorKind.SCHEDULE, "nightly")
    alert = people.machine(ActorKind.ALERT, "nightly")
    assert schedule is not None
    assert alert is not None
    assert (schedule.owner, alert.owner) == ("ann", "ben")
    assert people.machine(ActorKind.ALERT, "other") is None
