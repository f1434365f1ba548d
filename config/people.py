"""Who somebody is and which roles they hold, looked up in the configuration. Pure.

Used by `bot.desk` (identity to actor) and by the gate. Slack's user groups are not asked here: the
caller passes the memberships it knows, and a stale list can only give, never take (design 5).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from config.actors import ActorKind, Identity
from config.settings import MachineActor, Person, Settings

SLACK = "slack"
OS = "os"


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonEntry:
    """One person of the configuration."""

    name: str
    """Key under `people`; for people to read, never stored in the ledger."""
    identities: frozenset[Identity]
    roles: frozenset[str]
    """Roles held directly."""
    slack_groups: frozenset[str]
    """Memberships that hold even when Slack cannot be asked."""
    shared: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineEntry:
    """One schedule or alert source of the configuration."""

    name: str
    kind: ActorKind
    owner: str
    roles: frozenset[str]


class Directory:
    """Persons and machines by how the doors know them."""

    def __init__(self, settings: Settings) -> None:
        """The directory of these settings."""
        self.team = settings.slack.team if settings.slack is not None else ""
        """The workspace in which Slack user ids mean people here."""
        self._people = {name: _person(name, entry) for name, entry in settings.people.items()}
        self._by_identity = {
            identity: person for person in self._people.values() for identity in person.identities
        }
        self._group_roles = {name: frozenset(g.roles) for name, g in settings.groups.items()}
        self._machines = {
            **_machines(ActorKind.SCHEDULE, settings.schedules),
            **_machines(ActorKind.ALERT, settings.alert_sources),
        }

    def by_identity(self, identity: Identity) -> PersonEntry | None:
        """The person whom a door knows as `("slack", "T…/U…")` or `("os", "<user name or number>")`."""
        return self._by_identity.get(identity)

    def by_name(self, name: str) -> PersonEntry | None:
        """The person under this key."""
        return self._people.get(name)

    def everybody(self) -> tuple[PersonEntry, ...]:
        """All persons, by name."""
        return tuple(self._people[name] for name in sorted(self._people))

    def machine(self, kind: ActorKind, name: str) -> MachineEntry | None:
        """The schedule or alert source of this name."""
        return self._machines.get((kind, name))

    def roles(self, person: PersonEntry, member_of: Collection[str] = ()) -> frozenset[str]:
        """Roles held directly and through user groups, those configured and those in `member_of`."""
        groups = person.slack_groups | frozenset(member_of)
        through = (self._group_roles.get(group, frozenset()) for group in groups)
        return person.roles.union(*through)

    def group_roles(self, *, except_for: Collection[str]) -> frozenset[str]:
        """Roles that some user group gives, but for these groups."""
        return frozenset[str]().union(
            *(roles for group, roles in self._group_roles.items() if group not in except_for)
        )


def _person(name: str, entry: Person) -> PersonEntry:
    slack = (Identity(door=SLACK, subject=user) for user in entry.slack)
    local = (Identity(door=OS, subject=user) for user in entry.os_users)
    return PersonEntry(
        name=name,
        identities=frozenset((*slack, *local)),
        roles=frozenset(entry.roles),
        slack_groups=frozenset(entry.slack_groups),
        shared=entry.shared,
    )


def _machines(
    kind: ActorKind, entries: Mapping[str, MachineActor]
) -> dict[tuple[ActorKind, str], MachineEntry]:
    return {
        (kind, name): MachineEntry(
            name=name, kind=kind, owner=entry.owner, roles=frozenset(entry.roles)
        )
        for name, entry in entries.items()
    }
