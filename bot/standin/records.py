"""The things that a Slack workspace holds, as values: people, groups, channels, messages, views.

Used by every part of the stand-in. Only `world.World` keeps them, and only under its lock.
"""

from dataclasses import dataclass, field
from typing import Any

Payload = dict[str, Any]
"""A JSON object as Slack sends or takes it; its shape is Slack's, not ours."""

HOME_TEAM = "T00000001"
APP_ID = "A00000001"
BOT_ID = "B00000001"
BOT_USER = "U0000000B"


class SlackError(Exception):
    """A refusal in Slack's own words: `error` and what else stands in the answer."""

    def __init__(self, error: str, **extra: Any) -> None:
        super().__init__(error)
        self.error = error
        self.extra = extra


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A member, guest, bot or stranger as `users.info` tells it."""

    id: str
    name: str
    team_id: str = HOME_TEAM
    deleted: bool = False
    is_bot: bool = False
    is_restricted: bool = False
    is_ultra_restricted: bool = False

    @property
    def is_stranger(self) -> bool:
        """Whether the account belongs to another workspace (Slack Connect)."""
        return self.team_id != HOME_TEAM

    @property
    def email(self) -> str:
        """An address that nobody owns."""
        return f"{self.name}@workspace.invalid"

    def as_payload(self) -> Payload:
        """The `user` object of `users.info`."""
        return {
            "id": self.id,
            "team_id": self.team_id,
            "name": self.name,
            "real_name": self.name,
            "deleted": self.deleted,
            "is_bot": self.is_bot,
            "is_app_user": False,
            "is_restricted": self.is_restricted,
            "is_ultra_restricted": self.is_ultra_restricted,
            "is_stranger": self.is_stranger,
            "tz": "UTC",
            "tz_offset": 0,
            "profile": {
                "display_name": self.name,
                "real_name": self.name,
                "email": self.email,
                "team": self.team_id,
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class UserGroup:
    """A user group; a disabled one has members that Slack does not tell by default."""

    id: str
    handle: str
    members: tuple[str, ...] = ()
    disabled: bool = False

    def as_payload(self) -> Payload:
        """One element of `usergroups.list`."""
        return {
            "id": self.id,
            "team_id": HOME_TEAM,
            "is_usergroup": True,
            "name": self.handle,
            "handle": self.handle,
            "date_delete": 1 if self.disabled else 0,
            "user_count": len(self.members),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A channel or a direct message and who is in it."""

    id: str
    name: str
    members: frozenset[str] = frozenset()
    is_private: bool = False
    is_archived: bool = False
    is_ext_shared: bool = False
    is_pending_ext_shared: bool = False
    is_im: bool = False

    def as_payload(self) -> Payload:
        """The `channel` object of `conversations.info`."""
        return {
            "id": self.id,
            "name": self.name,
            "is_channel": not self.is_im and not self.is_private,
            "is_group": self.is_private and not self.is_im,
            "is_im": self.is_im,
            "is_private": self.is_private or self.is_im,
            "is_archived": self.is_archived,
            "is_ext_shared": self.is_ext_shared,
            "is_pending_ext_shared": self.is_pending_ext_shared,
            "is_shared": self.is_ext_shared,
            "is_member": BOT_USER in self.members,
            "context_team_id": HOME_TEAM,
            "num_members": len(self.members),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """One version of a message, as it was sent."""

    text: str
    blocks: tuple[Payload, ...] = ()
    metadata: Payload | None = None


@dataclass(slots=True, kw_only=True)
class StoredMessage:
    """A message or an ephemeral (`visible_to` is set) with every version it ever had."""

    channel: str
    ts: str
    user: str
    revisions: list[Content]
    thread_ts: str | None = None
    broadcast: bool = False
    visible_to: str | None = None
    answers: str | None = None
    deleted: bool = False
    reactions: dict[str, list[str]] = field(default_factory=dict)
    files: tuple[str, ...] = ()

    @property
    def content(self) -> Content:
        """The version that people see now."""
        return self.revisions[-1]


@dataclass(slots=True, kw_only=True)
class StoredView:
    """A modal on somebody's screen or somebody's home tab."""

    id: str
    user: str
    body: Payload
    hash: str
    root_id: str
    previous_id: str | None = None
    values: Payload = field(default_factory=dict)

    def as_payload(self) -> Payload:
        """The `view` object that Slack returns and sends."""
        return {
            "blocks": [],
            "private_metadata": "",
            "callback_id": "",
            "external_id": "",
            **self.body,
            "id": self.id,
            "team_id": HOME_TEAM,
            "app_id": APP_ID,
            "bot_id": BOT_ID,
            "app_installed_team_id": HOME_TEAM,
            "hash": self.hash,
            "root_view_id": self.root_id,
            "previous_view_id": self.previous_id,
            "state": {"values": self.values},
        }


@dataclass(slots=True, kw_only=True)
class StoredFile:
    """A file between its upload address and the message that shows it."""

    id: str
    name: str
    length: int
    content: bytes | None = None
    title: str = ""
    shared_in: str | None = None
