"""Who stands at a door: from a Slack user or an OS user to an actor with the roles held now.

Called by the doors and by the check before each step. Slack's group memberships are kept from the
last answer; a list that cannot be renewed gives what it gave, and never takes a role away.
"""

import threading
from collections.abc import Mapping

from audit_log.people import People
from config.actors import Actor, ActorKind, Identity
from config.ids import ActorId
from config.people import Directory, PersonEntry


class Stranger(Exception):
    """Somebody whom the configuration does not know; the message says what to add where."""


class Identities:
    """The directory, with an opaque id for each person."""

    def __init__(self, directory: Directory, people: People) -> None:
        """Every configured person has an id from now on."""
        self._directory = directory
        self._people = people
        self._members: dict[str, frozenset[str]] = {}
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
        """The person with this Slack user id, whatever the workspace."""
        for entry in self._directory.everybody():
            if any(
                one.door == "slack" and one.subject.endswith(f"/{user}") for one in entry.identities
            ):
                return self._actor(entry)
        return None

    def everybody(self) -> tuple[Actor, ...]:
        """All persons."""
        return tuple(self._actor(entry) for entry in self._directory.everybody())

    def name(self, actor: ActorId) -> str:
        """What people call this actor; the opaque id itself where nothing is known."""
        return self._names.get(actor) or (actor if actor == "engine" else self._people.name(actor))

    def os_user(self, actor: ActorId) -> str | None:
        """The first OS user of a person, for grants that reach only own jobs."""
        entry = self._directory.by_name(self._names.get(actor, ""))
        names = sorted(one.subject for one in entry.identities if one.door == "os") if entry else []
        return names[0] if names else None

    def slack_user(self, actor: ActorId) -> str | None:
        """The Slack user id of a person, for mentions."""
        entry = self._directory.by_name(self._names.get(actor, ""))
        ids = (
            sorted(one.subject for one in entry.identities if one.door == "slack") if entry else []
        )
        return ids[0].rpartition("/")[2] if ids else None

    def groups(self, members: Mapping[str, frozenset[str]]) -> None:
        """The newest memberships: Slack subject to user groups."""
        with self._guard:
            self._members = dict(members)

    @property
    def groups_known(self) -> bool:
        """Whether Slack has ever told who is in which group, since this process began."""
        with self._guard:
            return bool(self._members)

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
