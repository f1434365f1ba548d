"""Who acts: people and machines, the identities by which doors know them, and the doors."""

from dataclasses import dataclass
from enum import StrEnum

from config.ids import ActorId


class ActorKind(StrEnum):
    """What sort of actor stands behind an action."""

    PERSON = "person"
    """A human with any number of identities (Slack user, OS user)."""
    SCHEDULE = "schedule"
    """A configured hour."""
    ALERT = "alert"
    """A configured alert source."""
    ENGINE = "engine"
    """The bot itself: recovery, release of its own marks, pages."""


class Door(StrEnum):
    """Where a request came in; permissions and words are the same at each."""

    SLACK = "slack"
    CLI = "cli"
    STANDALONE = "standalone"
    WEBHOOK = "webhook"
    CLOCK = "clock"
    ENGINE = "engine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """How one door knows somebody: `("slack", "T1/U2")`, `("os", "1000")`."""

    door: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Somebody or something that may be allowed to act.

    `name` is for people to read and is never stored in the ledger; `id` is.
    `shared` marks an account that several people can use (root, a service account): it may not approve.
    """

    id: ActorId
    kind: ActorKind
    name: str
    roles: frozenset[str]
    shared: bool = False


ENGINE = Actor(id=ActorId("engine"), kind=ActorKind.ENGINE, name="nodewarden", roles=frozenset())
"""The bot acting for itself."""
