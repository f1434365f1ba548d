"""The words in which tests speak with the stand-in: messages, commands, views.

Every wait is a wait on the world's condition with a deadline; what does not come in time is an
AssertionError that tells what was there instead. Nothing here changes the state but through
`interactions`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from bot.standin import reading
from bot.standin.deliveries import Interaction
from bot.standin.interactions import Interactions
from bot.standin.reading import Wanted, insist
from bot.standin.records import (
    Content,
    Payload,
    StoredMessage,
    StoredView,
    User,
)

PATIENCE = 300.0
"""Seconds that an expectation waits unless it is told otherwise: it ends what hangs and times nothing."""


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
        person = user_named(self.place, by)
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
        return expect(self.place, self.thread, text, within)

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
        gone = self.place.world.wait_for(lambda: self.deleted, within)
        insist(gone, f"still there: {self.seen}")

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

    def ack(self, within: float = PATIENCE) -> Ack:
        """The bot's acknowledgement; an AssertionError when the person saw an error instead."""
        act = self.interaction
        self.place.world.wait_for(lambda: act.settled, within)
        if act.ack is None or act.acked_after is None:
            raise AssertionError(f"not acknowledged in time; shown: {act.error}")
        return Ack(payload=act.ack, latency=act.acked_after)

    def error(self, within: float = PATIENCE) -> str:
        """The error that Slack showed the person; an AssertionError when there is none."""
        act = self.interaction
        self.place.world.wait_for(lambda: act.error is not None, within)
        if act.error is None:
            raise AssertionError(f"no error; acknowledged with {act.ack}")
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
        return expect(self.place, self.ephemerals, text, within)

    def view(self, within: float = PATIENCE) -> View:
        """Wait for a modal on the person's screen."""
        return top_view(self.place, self.interaction.user, within)


def user_named(place: Interactions, name: str) -> User:
    """The account of that name or id."""
    user = place.world.user_named(name) or place.world.users.get(name)
    if user is None:
        raise AssertionError(f"nobody here is called {name!r}; make them with person({name!r})")
    return user


def expect(
    place: Interactions,
    look: Callable[[], tuple[Message, ...]],
    text: Wanted | None,
    within: float,
) -> Message:
    """Wait until `look` finds a message that shows `text`; the newest one if there are several."""
    found: list[Message] = []

    def there() -> bool:
        found[:] = [m for m in look() if reading.matches(text, m.seen)]
        return bool(found)

    if not place.world.wait_for(there, within):
        shown = "\n---\n".join(m.seen for m in look()) or "(nothing)"
        raise AssertionError(f"no message with {text!r} within {within} s; there is:\n{shown}")
    return found[-1]


def top_view(place: Interactions, user: str, within: float) -> View:
    """Wait for a modal on the screen of `user`: the topmost one."""
    world = place.world
    insist(world.wait_for(lambda: bool(world.stacks.get(user)), within), "no modal is open")
    with world.condition:
        return View(place=place, stored=world.views[world.stacks[user][-1]])
