"""What Slack hands out for a short time: trigger ids, response urls, socket addresses.

The interactions issue them, the Web API redeems them. Times come from the injected clock.
"""

import itertools
from dataclasses import dataclass

from bot.standin.records import SlackError
from bot.standin.world import World

TRIGGER_SECONDS = 3.0
RESPONSE_URL_SECONDS = 30 * 60.0
RESPONSE_URL_USES = 5


@dataclass(slots=True, kw_only=True)
class _Trigger:
    user: str
    issued: float
    used: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyPlace:
    """Where an answer through a response url goes."""

    channel: str
    user: str
    interaction: str
    message_ts: str | None = None


@dataclass(slots=True, kw_only=True)
class _ResponseUrl:
    place: ReplyPlace
    issued: float
    uses: int = 0


class Tickets:
    """All tickets of one workspace; used under the world's lock."""

    def __init__(self, world: World, trigger_seconds: float = TRIGGER_SECONDS) -> None:
        """`trigger_seconds` is how long a trigger id can be exchanged."""
        self._world = world
        self._trigger_seconds = trigger_seconds
        self._numbers = itertools.count(1)
        self._triggers: dict[str, _Trigger] = {}
        self._urls: dict[str, _ResponseUrl] = {}
        self._links: set[str] = set()

    def new_trigger(self, user: str) -> str:
        """A trigger id that opens one view for `user` within three seconds."""
        number = next(self._numbers)
        trigger = f"{number:013d}.{number:011d}.{number:032x}"
        self._triggers[trigger] = _Trigger(user=user, issued=self._world.seconds())
        return trigger

    def exchange_trigger(self, trigger_id: str) -> str:
        """The user whose trigger this is; it cannot be exchanged again."""
        trigger = self._triggers.get(trigger_id)
        if trigger is None:
            raise SlackError("invalid_trigger_id")
        if trigger.used:
            raise SlackError("exchanged_trigger_id")
        if self._world.seconds() - trigger.issued > self._trigger_seconds:
            raise SlackError("expired_trigger_id")
        trigger.used = True
        return trigger.user

    def new_response_url(self, place: ReplyPlace) -> str:
        """The last part of a response url for `place`."""
        token = f"{next(self._numbers):024x}"
        self._urls[token] = _ResponseUrl(place=place, issued=self._world.seconds())
        return token

    def use_response_url(self, token: str) -> ReplyPlace:
        """Where this answer goes; five answers within thirty minutes, then an error."""
        url = self._urls.get(token)
        if url is None or self._world.seconds() - url.issued > RESPONSE_URL_SECONDS:
            raise SlackError("expired_url")
        if url.uses >= RESPONSE_URL_USES:
            raise SlackError("used_url")
        url.uses += 1
        return url.place

    def new_link(self) -> str:
        """A ticket that opens one socket."""
        ticket = f"{next(self._numbers):032x}"
        self._links.add(ticket)
        return ticket

    def use_link(self, ticket: str) -> bool:
        """Whether the ticket opens a socket; it does so once."""
        if ticket not in self._links:
            return False
        self._links.discard(ticket)
        return True
