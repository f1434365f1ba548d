"""What a Slack workspace holds: people, groups, channels, messages, views and files.

Every part of the stand-in reads and changes it under `condition`; waiting tests and the web page
wake on that condition. It decides nothing about limits, tokens or faults.
"""

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from config.clock import Clock, microseconds

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


class World:
    """All of the state, with the lock that guards it."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.condition = threading.Condition(threading.RLock())
        self.revision = 0
        self.users: dict[str, User] = {}
        self.groups: dict[str, UserGroup] = {}
        self.channels: dict[str, Conversation] = {}
        self.messages: dict[tuple[str, str], StoredMessage] = {}
        self.views: dict[str, StoredView] = {}
        self.stacks: dict[str, list[str]] = {}
        self.homes: dict[str, str] = {}
        self.files: dict[str, StoredFile] = {}
        self.listeners: list[Callable[[], None]] = []
        self._numbers = itertools.count(1)
        self._last_ts = 0
        self.users[BOT_USER] = User(id=BOT_USER, name="ops-bot", is_bot=True)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the state for one change, then wake everybody who waits for one."""
        with self.condition:
            yield
            self.revision += 1
            self.condition.notify_all()
            for listener in tuple(self.listeners):
                listener()

    def wait_for(self, predicate: Callable[[], bool], within: float) -> bool:
        """Wait until `predicate` holds; `within` is in real seconds, whatever clock is injected."""
        with self.condition:
            return self.condition.wait_for(predicate, within)

    def new_id(self, prefix: str) -> str:
        """An id that this workspace never gives twice."""
        return f"{prefix}{next(self._numbers):08d}"

    def new_ts(self) -> str:
        """A message time, later than every earlier one."""
        now = microseconds(self.clock.now().wall)
        self._last_ts = max(now, self._last_ts + 1)
        return f"{self._last_ts // 1_000_000}.{self._last_ts % 1_000_000:06d}"

    def seconds(self) -> float:
        """The monotonic clock in seconds, for latencies, buckets and expiry."""
        return self.clock.now().monotonic / timedelta(seconds=1)

    def user_named(self, name: str) -> User | None:
        """The account of that name."""
        return next((user for user in self.users.values() if user.name == name), None)

    def channel_named(self, name: str) -> Conversation | None:
        """The channel of that name, with or without `#`, or of that id."""
        bare = name.removeprefix("#")
        found = (c for c in self.channels.values() if bare in (c.name, c.id))
        return next(found, None)

    def group_named(self, handle: str) -> UserGroup | None:
        """The user group with that handle."""
        return next((g for g in self.groups.values() if g.handle == handle), None)

    def direct(self, user: str) -> Conversation:
        """The direct message between the bot and `user`, opened when there is none."""
        members = frozenset({user, BOT_USER})
        for channel in self.channels.values():
            if channel.is_im and channel.members == members:
                return channel
        opened = Conversation(
            id=self.new_id("D"), name="directmessage", members=members, is_im=True
        )
        self.channels[opened.id] = opened
        return opened

    def join(self, channel: str, user: str) -> None:
        """Make `user` a member of `channel`."""
        found = self.channels[channel]
        self.channels[channel] = replace(found, members=found.members | {user})

    def leave(self, channel: str, user: str) -> None:
        """End the membership of `user` in `channel`."""
        found = self.channels[channel]
        self.channels[channel] = replace(found, members=found.members - {user})

    def post(self, message: StoredMessage) -> StoredMessage:
        """Store a new message."""
        self.messages[message.channel, message.ts] = message
        return message

    def with_block_ids(self, blocks: list[Payload]) -> tuple[Payload, ...]:
        """The blocks as Slack stores them: every block and every control has an id."""
        return tuple(self._with_ids(block) for block in blocks)

    def _with_ids(self, block: Payload) -> Payload:
        named = {"block_id": self.new_id("b"), **block}
        if named.get("type") == "actions":
            named["elements"] = [
                {"action_id": self.new_id("a"), **e}
                for e in named.get("elements", [])
                if isinstance(e, dict)
            ]
        return named

    def in_channel(self, channel: str) -> list[StoredMessage]:
        """What stands in a channel, oldest first, without ephemerals and deleted messages."""
        found = [
            m
            for m in self.messages.values()
            if m.channel == channel and m.visible_to is None and not m.deleted
        ]
        return sorted(found, key=lambda m: m.ts)

    def message_payload(self, message: StoredMessage) -> Payload:
        """A message as `conversations.replies` and interactive payloads show it."""
        content = message.content
        payload: Payload = {
            "type": "message",
            "ts": message.ts,
            "user": message.user,
            "text": content.text,
            "blocks": list(content.blocks),
            "team": HOME_TEAM,
        }
        if message.user == BOT_USER:
            payload |= {"bot_id": BOT_ID, "app_id": APP_ID}
        if message.thread_ts is not None:
            payload["thread_ts"] = message.thread_ts
        if len(message.revisions) > 1:
            payload["edited"] = {"user": message.user, "ts": message.ts}
        if content.metadata is not None:
            payload["metadata"] = content.metadata
        if message.reactions:
            payload["reactions"] = [
                {"name": n, "users": u, "count": len(u)} for n, u in message.reactions.items()
            ]
        return payload
