"""The words in which tests speak with the stand-in: people and channels.

`SlackStandIn.person` and `SlackStandIn.channel` hand them out; what people do comes back as the
messages and commands of `vocabulary`.
"""

from dataclasses import dataclass, replace

from bot.standin.interactions import Interactions
from bot.standin.reading import Wanted, insist
from bot.standin.records import BOT_USER, Conversation, Payload, User
from bot.standin.vocabulary import PATIENCE, Command, Message, View, expect, top_view, user_named


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
        return expect(self.place, self.messages, text, within)

    def archive(self) -> None:
        """Archive it."""
        self._change(replace(self.stored, is_archived=True))

    def share(self) -> None:
        """Share it with another workspace (Slack Connect)."""
        self._change(replace(self.stored, is_ext_shared=True, is_pending_ext_shared=False))
        event: Payload = {"type": "channel_shared", "channel": self.id}
        self.place.event(self.place.world.users[BOT_USER], event)

    def offer_to_share(self) -> None:
        """Invite another workspace, which has not accepted yet."""
        self._change(replace(self.stored, is_pending_ext_shared=True))

    def _change(self, changed: Conversation) -> None:
        with self.place.world.changing():
            self.place.world.channels[self.id] = changed

    def invite(self, *users: str) -> None:
        """Make these people (or the bot, by its name) members."""
        with self.place.world.changing():
            for name in users:
                self.place.world.join(self.id, user_named(self.place, name).id)

    def remove(self, *users: str) -> None:
        """End the membership of these people (or of the bot, by its name)."""
        with self.place.world.changing():
            for name in users:
                self.place.world.leave(self.id, user_named(self.place, name).id)


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
        published = world.wait_for(lambda: self.id in world.homes, within)
        insist(published, "no home tab was published")
        return View(place=self.place, stored=world.views[world.homes[self.id]])

    def view(self, within: float = PATIENCE) -> View:
        """Wait for a modal on the screen: the topmost one."""
        return top_view(self.place, self.id, within)

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


def _channel(place: Interactions, name: str) -> Conversation:
    channel = place.world.channel_named(name)
    if channel is None:
        raise AssertionError(f"there is no channel {name}; make it with channel({name!r})")
    return channel
