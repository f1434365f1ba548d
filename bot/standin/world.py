"""The state of the workspace and the lock that guards it.

Every part of the stand-in reads and changes it under `condition`; waiting tests and the web page
wake on that condition. It decides nothing about limits, tokens or faults.
"""

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

from bot.standin.records import (
    APP_ID,
    BOT_ID,
    BOT_USER,
    HOME_TEAM,
    Conversation,
    Payload,
    StoredFile,
    StoredMessage,
    StoredView,
    User,
    UserGroup,
)
from config.clock import Clock, microseconds


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
