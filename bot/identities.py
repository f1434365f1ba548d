"""Who stands at a door: from a Slack user or an OS user to an actor with the roles held now.

Called by the doors and by the check before each step. Slack's group memberships are kept from the
last answer; a list that cannot be renewed gives what it gave, and never takes a role away.
"""

import re
import threading
from collections.abc import Mapping

from audit_log.people import People
from bot.os_users import login_name
from config.actors import Actor, ActorKind, Identity
from config.ids import ActorId
from config.people import Directory, PersonEntry

UNKNOWN = "nobody in the configuration"
"""How the ledger calls a stranger: it holds no names."""


_PERSON = re.compile(r"\bp-[0-9a-f]{10}\b", re.ASCII)
"""An opaque id as `audit_log.people` mints it."""


class Stranger(Exception):
    """Somebody whom the configuration does not know; the message says what to add where."""


class Identities:
    """The directory, with an opaque id for each person."""

    def __init__(self, directory: Directory, people: People) -> None:
        """Every configured person has an id from now on."""
        self._directory = directory
        self._people = people
        self._members: dict[str, frozenset[str]] = {}
        self._told: frozenset[str] = frozenset()
        self._guard = threading.Lock()
        self._ids: dict[str, ActorId] = {}
        for entry in directory.everybody():
            found = tuple(sorted(entry.identities, key=lambda one: (one.door, one.subject)))
            self._ids[entry.name] = people.ensure(entry.name, found)
        self._names = {actor: name for name, actor in self._ids.items()}

    def at_door(self, identity: Identity) -> Actor:
        """The person with this identity. Raises Stranger."""
        entry = self._directory.by_identity(identity)
        if entry is None:
            raise Stranger(
                f"{identity.door} user {identity.subject} is nobody in the configuration; "
                "an admin adds it under `people`"
            )
        return self._actor(entry)

    def by_name(self, name: str) -> Actor | None:
        """The person under this key of the configuration."""
        entry = self._directory.by_name(name)
        return self._actor(entry) if entry else None

    def by_id(self, actor: ActorId) -> Actor | None:
        """The person with this opaque id, None once the configuration no longer has it."""
        name = self._names.get(actor)
        return self.by_name(name) if name else None

    def by_slack_user(self, user: str) -> Actor | None:
        """The person with this user id in our workspace; ids of another one are other people's."""
        entry = self._directory.by_identity(
            Identity(door="slack", subject=f"{self._directory.team}/{user}")
        )
        return self._actor(entry) if entry else None

    def everybody(self) -> tuple[Actor, ...]:
        """All persons."""
        return tuple(self._actor(entry) for entry in self._directory.everybody())

    def name(self, actor: ActorId) -> str:
        """What people call this actor; the opaque id itself where nothing is known."""
        return self._names.get(actor) or (actor if actor == "engine" else self._people.name(actor))

    def named(self, text: str) -> str:
        """A stored text with the names of its people: the ledger holds opaque ids only (design 4)."""
        return _PERSON.sub(lambda found: self.name(ActorId(found[0])), text)

    def os_user(self, actor: ActorId) -> str | None:
        """The OS user of a person by name, for grants that reach only own jobs: jobs have names."""
        names = sorted(login_name(user) for user in self._subjects(actor, "os"))
        return next((name for name in names if not name.isdecimal()), next(iter(names), None))

    def slack_user(self, actor: ActorId) -> str | None:
        """The Slack user id of a person in our workspace, for mentions."""
        ids = (subject.partition("/") for subject in self._subjects(actor, "slack"))
        return min((user for team, _, user in ids if team == self._directory.team), default=None)

    def _subjects(self, actor: ActorId, door: str) -> tuple[str, ...]:
        entry = self._directory.by_name(self._names.get(actor, ""))
        found = entry.identities if entry else frozenset[Identity]()
        return tuple(sorted(one.subject for one in found if one.door == door))

    def groups(self, members: Mapping[str, frozenset[str]], told: frozenset[str]) -> None:
        """The newest memberships: Slack subject to user groups, and which groups Slack has told."""
        with self._guard:
            self._members = dict(members)
            self._told = told

    @property
    def groups_known(self) -> bool:
        """Whether Slack has ever told who is in which group, since this process began."""
        with self._guard:
            return bool(self._told)

    def untold_roles(self) -> frozenset[str]:
        """Roles of groups whose members Slack has not told since this process began: anybody named
        before may still hold them.
        """
        with self._guard:
            return self._directory.group_roles(except_for=self._told)

    def _actor(self, entry: PersonEntry) -> Actor:
        with self._guard:
            member_of = frozenset[str]().union(
                *(self._members.get(one.subject, frozenset()) for one in entry.identities)
            )
        return Actor(
            id=self._ids[entry.name],
            kind=ActorKind.PERSON,
            name=entry.name,
            roles=self._directory.roles(entry, member_of),
            shared=entry.shared,
        )
