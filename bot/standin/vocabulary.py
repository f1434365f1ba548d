"""The words in which tests speak with the stand-in: people, channels, messages, commands.

Every wait is a wait on the world's condition with a deadline; what does not come in time is an
AssertionError that tells what was there instead. Nothing here changes the state but through
`interactions`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from bot.standin import reading
from bot.standin.deliveries import ACK_SECONDS, Interaction
from bot.standin.interactions import Interactions
from bot.standin.reading import Wanted
from bot.standin.world import (
    Content,
    Conversation,
    Payload,
    StoredMessage,
    StoredView,
    User,
)

PATIENCE = 5.0
"""Seconds that an expectation waits unless it is told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """How the bot acknowledged."""

    payload: Payload
    latency: float
    """Seconds between the press and the acknowledgement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message, live: each property shows what stands there now."""

    place: Interactions
    stored: StoredMessage

    @property
    def ts(self) -> str:
        """The message's id within its channel."""
        return self.stored.ts

    @property
    def content(self) -> Content:
        """The newest version."""
        return self.stored.content

    @property
    def text(self) -> str:
        """The notification text of the newest version."""
        return self.content.text

    @property
    def blocks(self) -> list[Payload]:
        """The blocks of the newest version."""
        return list(self.content.blocks)

    @property
    def seen(self) -> str:
        """All that a person reads in the newest version."""
        return reading.seen_text(self.content)

    @property
    def metadata(self) -> Payload | None:
        """The metadata of the newest version."""
        return self.content.metadata

    @property
    def revisions(self) -> tuple[Content, ...]:
        """Every version that there was, the first one first."""
        with self.place.world.condition:
            return tuple(self.stored.revisions)

    @property
    def deleted(self) -> bool:
        """Whether it was deleted."""
        return self.stored.deleted

    @property
    def reactions(self) -> tuple[str, ...]:
        """Names of the reactions on it."""
        return tuple(name for name, users in self.stored.reactions.items() if users)

    @property
    def buttons(self) -> tuple[str, ...]:
        """The words on its controls."""
        return tuple(reading.label(c) for c in reading.controls(self.blocks))

    def button(self, words: str) -> Payload:
        """The control with these words or this action id, as stored now."""
        return reading.button(self.blocks, words)

    def click(self, words: str, by: str, *, revision: int = -1) -> "Command":
        """Press a control as the person `by`; an older `revision` makes it a stale click."""
        control = reading.button(list(self.revisions[revision].blocks), words)
        person = _user(self.place, by)
        return Command(place=self.place, interaction=self.place.click(person, self.stored, control))

    def thread(self) -> tuple["Message", ...]:
        """The replies in its thread, oldest first."""
        with self.place.world.condition:
            replies = [
                Message(place=self.place, stored=m)
                for m in self.place.world.in_channel(self.stored.channel)
                if m.thread_ts == self.ts and m.ts != self.ts
            ]
        return tuple(replies)

    def expect_reply(self, text: Wanted | None = None, within: float = PATIENCE) -> "Message":
        """Wait for a reply in the thread that shows `text`."""
        return _expect(self.place, self.thread, text, within)

    def expect_update(self, text: Wanted | None = None, within: float = PATIENCE) -> "Message":
        """Wait until this message has been edited and its newest version shows `text`."""

        def edited() -> bool:
            return len(self.stored.revisions) > 1 and reading.matches(text, self.seen)

        if not self.place.world.wait_for(edited, within):
            raise AssertionError(
                f"no edit with {text!r} within {within} s; revision {len(self.revisions)} shows:\n"
                f"{self.seen}"
            )
        return self

    def expect_deleted(self, within: float = PATIENCE) -> None:
        """Wait until it is gone."""
        assert self.place.world.wait_for(lambda: self.deleted, within), f"still there: {self.seen}"

    def remove(self) -> None:
        """Delete it, as a person or an admin of the workspace would."""
        with self.place.world.changing():
            self.stored.deleted = True


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A modal or a home tab on somebody's screen."""

    place: Interactions
    stored: StoredView

    @property
    def body(self) -> Payload:
        """What it shows now, as Slack would send it."""
        with self.place.world.condition:
            return self.stored.as_payload()

    @property
    def seen(self) -> str:
        """All that a person reads in it."""
        return reading.seen_text(Content(text="", blocks=tuple(self.body["blocks"])))

    def click(self, words: str) -> "Command":
        """Press a control of it."""
        control = reading.button(self.body["blocks"], words)
        user = self.place.world.users[self.stored.user]
        return Command(
            place=self.place, interaction=self.place.click_view(user, self.stored, control)
        )

    def submit(self, values: Payload) -> "Command":
        """Send the modal off; `values` is block id -> action id -> value object."""
        user = self.place.world.users[self.stored.user]
        return Command(place=self.place, interaction=self.place.submit(user, self.stored, values))

    def suggest(self, action_id: str, letters: str) -> "Command":
        """Type letters into an external select."""
        control = reading.button(self.body["blocks"], action_id) | {"value": letters}
        user = self.place.world.users[self.stored.user]
        return Command(place=self.place, interaction=self.place.suggest(user, self.stored, control))

    def close(self) -> None:
        """Take it off the screen without submitting."""
        user = self.place.world.users[self.stored.user]
        self.place.dismiss(user, self.stored)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Something that a person did: a command, a click, a submitted modal, a mention."""

    place: Interactions
    interaction: Interaction

    def ack(self, within: float = ACK_SECONDS) -> Ack:
        """The bot's acknowledgement; an AssertionError when the person saw an error instead."""
        act = self.interaction
        self.place.world.wait_for(lambda: act.settled, within)
        if act.ack is None or act.acked_after is None:
            raise AssertionError(f"not acknowledged within {within} s; shown: {act.error}")
        return Ack(payload=act.ack, latency=act.acked_after)

    def error(self, within: float = ACK_SECONDS + 1) -> str:
        """The error that Slack showed the person; an AssertionError when there is none."""
        act = self.interaction
        self.place.world.wait_for(lambda: act.error is not None, within)
        assert act.error is not None, f"no error; acknowledged with {act.ack}"
        return act.error

    def ephemerals(self) -> tuple[Message, ...]:
        """What only this person was shown there since: answers to it and other notices."""
        act = self.interaction
        with self.place.world.condition:
            found = [
                Message(place=self.place, stored=m)
                for m in self.place.world.messages.values()
                if m.visible_to == act.user and not m.deleted and self._later(m)
            ]
        return tuple(found)

    def _later(self, message: StoredMessage) -> bool:
        act = self.interaction
        if message.answers is not None:
            return message.answers == act.id
        return act.channel in (None, message.channel) and message.ts > act.began

    def expect_ephemeral(self, text: Wanted | None = None, within: float = PATIENCE) -> Message:
        """Wait until this person alone is shown `text`."""
        return _expect(self.place, self.ephemerals, text, within)

    def view(self, within: float = PATIENCE) -> View:
        """Wait for a modal on the person's screen."""
        return Person(place=self.place, id=self.interaction.user).view(within=within)


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """A channel or a direct message."""

    place: Interactions
    id: str

    @property
    def stored(self) -> Conversation:
        """Its state now."""
        return self.place.world.channels[self.id]

    def messages(self) -> tuple[Message, ...]:
        """What stands in it, oldest first, without threads."""
        with self.place.world.condition:
            return tuple(
                Message(place=self.place, stored=m)
                for m in self.place.world.in_channel(self.id)
                if m.thread_ts in (None, m.ts) or m.broadcast
            )

    def expect(self, text: Wanted | None = None, within: float = PATIENCE) -> Message:
        """Wait for a message that shows `text`; the newest one if there are several."""
        return _expect(self.place, self.messages, text, within)

    def archive(self) -> None:
        """Archive it."""
        self._change(is_archived=True)

    def share(self) -> None:
        """Share it with another workspace (Slack Connect)."""
        self._change(is_ext_shared=True)

    def _change(self, **changes: bool) -> None:
        world = self.place.world
        with world.changing():
            found = world.channels[self.id]
            world.channels[self.id] = Conversation(
                id=found.id,
                name=found.name,
                members=found.members,
                is_private=found.is_private,
                is_im=found.is_im,
                is_archived=changes.get("is_archived", found.is_archived),
                is_ext_shared=changes.get("is_ext_shared", found.is_ext_shared),
            )

    def invite(self, *users: str) -> None:
        """Make these people (or the bot, by its name) members."""
        with self.place.world.changing():
            for name in users:
                self.place.world.join(self.id, _user(self.place, name).id)

    def remove(self, *users: str) -> None:
        """End the membership of these people (or of the bot, by its name)."""
        with self.place.world.changing():
            for name in users:
                self.place.world.leave(self.id, _user(self.place, name).id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who uses Slack."""

    place: Interactions
    id: str

    @property
    def user(self) -> User:
        """The account as it is now."""
        return self.place.world.users[self.id]

    def command(self, channel: str, text: str) -> Command:
        """Type a slash command, e.g. `command("#ops", "/ops status")`."""
        act = self.place.command(self.user, _channel(self.place, channel), text)
        return Command(place=self.place, interaction=act)

    def command_to_bot(self, text: str) -> Command:
        """Type a slash command in the direct message with the bot."""
        with self.place.world.changing():
            direct = self.place.world.direct(self.id)
        return Command(place=self.place, interaction=self.place.command(self.user, direct, text))

    def say(self, channel: str, text: str, thread: Message | None = None) -> Message:
        """Write a message; `@ops-bot` in it mentions the bot."""
        ts = None if thread is None else thread.ts
        stored = self.place.say(self.user, _channel(self.place, channel), text, ts)
        return Message(place=self.place, stored=stored)

    def tell_bot(self, text: str) -> Message:
        """Write a direct message to the bot."""
        with self.place.world.changing():
            direct = self.place.world.direct(self.id)
        return Message(place=self.place, stored=self.place.say(self.user, direct, text))

    @property
    def direct(self) -> Channel:
        """The direct message with the bot."""
        with self.place.world.changing():
            return Channel(place=self.place, id=self.place.world.direct(self.id).id)

    def open_home(self) -> None:
        """Look at the bot's home tab."""
        event: Payload = {"type": "app_home_opened", "user": self.id, "tab": "home"}
        self.place.event(self.user, event)

    def home(self, within: float = PATIENCE) -> View:
        """Wait for the home tab that the bot publishes for this person."""
        world = self.place.world
        assert world.wait_for(lambda: self.id in world.homes, within), "no home tab was published"
        return View(place=self.place, stored=world.views[world.homes[self.id]])

    def view(self, within: float = PATIENCE) -> View:
        """Wait for a modal on the screen: the topmost one."""
        world = self.place.world
        assert world.wait_for(lambda: bool(world.stacks.get(self.id)), within), "no modal is open"
        with world.condition:
            return View(place=self.place, stored=world.views[world.stacks[self.id][-1]])

    @property
    def views(self) -> tuple[View, ...]:
        """The modals on the screen, the topmost last."""
        with self.place.world.condition:
            names = self.place.world.stacks.get(self.id, [])
            return tuple(View(place=self.place, stored=self.place.world.views[n]) for n in names)

    def deactivate(self) -> None:
        """Deactivate the account."""
        self._change(replace(self.user, deleted=True))

    def make_guest(self) -> None:
        """Turn the account into a guest's."""
        self._change(replace(self.user, is_restricted=True))

    def rename(self, name: str) -> None:
        """Give the account another name."""
        self._change(replace(self.user, name=name))

    def _change(self, user: User) -> None:
        with self.place.world.changing():
            self.place.world.users[self.id] = user
        self.place.event(user, {"type": "user_change", "user": user.as_payload()})


def _user(place: Interactions, name: str) -> User:
    user = place.world.user_named(name) or place.world.users.get(name)
    assert user is not None, f"nobody here is called {name!r}; make them with person({name!r})"
    return user


def _channel(place: Interactions, name: str) -> Conversation:
    channel = place.world.channel_named(name)
    assert channel is not None, f"there is no channel {name}; make it with channel({name!r})"
    return channel


def _expect(
    place: Interactions,
    look: Callable[[], tuple[Message, ...]],
    text: Wanted | None,
    within: float,
) -> Message:
    found: list[Message] = []

    def there() -> bool:
        found[:] = [m for m in look() if reading.matches(text, m.seen)]
        return bool(found)

    if not place.world.wait_for(there, within):
        shown = "\n---\n".join(m.seen for m in look()) or "(nothing)"
        raise AssertionError(f"no message with {text!r} within {within} s; there is:\n{shown}")
    return found[-1]
