"""Who stands behind an opaque id: name, Slack user, OS user. Outside the chain, so it can be cleared.

The ledger holds only ids such as `p-3f9a0c12d4`. Called by the doors to find out who is speaking,
and by the renderers to show a name. Clearing a person leaves every record as it is.
"""

import secrets
from collections.abc import Sequence

from audit_log.database import Row
from audit_log.ledger import Ledger, ProjectionCursor, Urgency
from config.actors import Identity
from config.ids import ActorId


class IdentityTaken(ValueError):
    """The identities given as one person's belong to different people."""


class People:
    """The table of people."""

    def __init__(self, ledger: Ledger) -> None:
        """Reads and writes through the ledger's connections."""
        self._ledger = ledger

    def ensure(self, name: str, identities: Sequence[Identity]) -> ActorId:
        """The id of the person who has these identities; a new one when nobody has any of them.

        Missing identities are added and the name is brought up to date. Raises IdentityTaken when
        they belong to more than one person: two histories must never become one unnoticed.
        """
        return self._ledger.amend(
            lambda cursor: _ensure(cursor, name, tuple(identities)), Urgency.REST
        )

    def find(self, identity: Identity) -> ActorId | None:
        """Whose identity this is."""
        rows = self._ledger.query(
            "SELECT id FROM people_identities WHERE door = ? AND subject = ?",
            (identity.door, identity.subject),
        )
        return ActorId(rows[0][0]) if rows else None

    def identities(self, person: ActorId) -> tuple[Identity, ...]:
        """How the doors know this person."""
        rows = self._ledger.query(
            "SELECT door, subject FROM people_identities WHERE id = ? ORDER BY door, subject",
            (person,),
        )
        return tuple(Identity(door=door, subject=subject) for door, subject in rows)

    def name(self, person: ActorId) -> str:
        """The name to show; the id itself when it was cleared or is no person."""
        rows = self._ledger.query("SELECT name FROM people WHERE id = ?", (person,))
        return str(rows[0][0]) if rows else person

    def clear(self, person: ActorId) -> bool:
        """Forget name and identities; whether there was anything. The id is never given again."""
        return self._ledger.amend(
            lambda cursor: bool(
                cursor.execute("DELETE FROM people WHERE id = ? RETURNING id", (person,))
            ),
            Urgency.REST,
        )


def _ensure(cursor: ProjectionCursor, name: str, identities: tuple[Identity, ...]) -> ActorId:
    """Find or make the person, on the writer thread."""
    owners = {row[0] for identity in identities for row in _owner(cursor, identity)}
    if len(owners) > 1:
        raise IdentityTaken(
            f"these identities belong to {len(owners)} people ({', '.join(sorted(owners))}):"
            " clear one of them, or correct the configuration of people"
        )
    person = ActorId(owners.pop()) if owners else ActorId(f"p-{secrets.token_hex(5)}")
    cursor.execute(
        "INSERT INTO people (id, name) VALUES (?, ?)"
        " ON CONFLICT (id) DO UPDATE SET name = excluded.name",
        (person, name),
    )
    for identity in identities:
        cursor.execute(
            "INSERT OR IGNORE INTO people_identities (door, subject, id) VALUES (?, ?, ?)",
            (identity.door, identity.subject, person),
        )
    return person


def _owner(cursor: ProjectionCursor, identity: Identity) -> list[Row]:
    """The row of this identity's owner."""
    return cursor.execute(
        "SELECT id FROM people_identities WHERE door = ? AND subject = ?",
        (identity.door, identity.subject),
    )
