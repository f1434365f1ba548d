"""Who may be spoken with: our workspace, real members, channels that no other company sees.

Asked on the acknowledging path, so what Slack says of a person or a channel is remembered for a
while, and asked again in good time for those who are expected or were here lately: nobody's command
waits for that. When Slack cannot be asked, the last answer counts for an hour; without one the person
is turned away.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bot.diagnostics import Finding
from bot.identities import Identities, Stranger
from bot.slack.asks import Ask
from bot.slack.courses import SHARED
from bot.slack.web import Limited, Said, Unanswered, Unsent, Web
from config.actors import Actor, Identity

log = logging.getLogger(__name__)

FRESH = 120.0
"""Seconds for which an answer of Slack's counts without being asked again."""
RENEWED = 60.0
"""Seconds after which it is asked again about whoever is expected or was here lately."""
LATELY = 1800.0
"""Seconds."""
STALE = 3600.0
"""Seconds for which it counts when Slack cannot be asked."""
PATIENCE = 1.5
"""Seconds that the acknowledging path waits for it."""
MOST_KEPT = 5000
MOST_EXPECTED = 20
"""People about whom Slack is asked before they say anything: the first command of a night must not
wait for it, and a minute has a hundred such questions for the whole app."""
USER = "users.info"
CHANNEL = "conversations.info"
_FIELD = {USER: "user", CHANNEL: "channel"}

Name = tuple[str, str]
"""A method, and the id that is asked about."""


class TurnedAway(Exception):
    """Not somebody to whom the bot answers; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    at: float
    told: Mapping[str, Any]


class Visitors:
    """Accounts and channels as Slack describes them; lives in the event loop."""

    def __init__(
        self, web: Web, identities: Identities, team: str, channels: Iterable[str]
    ) -> None:
        """`team` is the configured workspace; in `channels` commands are expected."""
        self._web = web
        self._identities = identities
        self._team = team
        self._expected = [(CHANNEL, channel) for channel in channels]
        self._known: dict[Name, _Known] = {}
        self._used: dict[Name, float] = {}
        self._under_way: dict[Name, asyncio.Task[Mapping[str, Any]]] = {}

    async def run(self) -> None:
        """Keep what is known of those who are expected or were here lately fresh, until cancelled."""
        people = (self._identities.slack_user(person.id) for person in self._identities.everybody())
        self._expected += [(USER, user) for user in people if user][:MOST_EXPECTED]
        while True:
            await self.renew()
            await asyncio.sleep(RENEWED / 4)

    async def renew(self) -> None:
        """Ask again what is about to be too old; one after the other, because nobody waits."""
        now = _now()
        self._used = {name: at for name, at in self._used.items() if now - at < LATELY}
        for name in dict.fromkeys((*self._expected, *self._used)):
            if self._age(name) < RENEWED:
                continue
            try:
                await self._begin(name)
            except (Limited, Unsent):
                return  # Slack takes nothing now: the next round asks
            except (Said, Unanswered) as problem:
                log.info("Slack does not tell about %s: %s", name[1], problem)

    async def admit(self, ask: Ask) -> Actor:
        """The person who asks. Raises TurnedAway."""
        if ask.team != self._team:
            raise TurnedAway(
                f"you are in workspace {ask.team or '?'}; this bot serves {self._team}"
            )
        account, channel = (USER, ask.user), (CHANNEL, ask.channel)
        private = not ask.channel or ask.direct
        for name in (account,) if private else (channel, account):
            self._used[name] = _now()
            if self._age(name) >= FRESH:
                self._begin(name)  # both at once; below they are waited for
        if ask.shared or (not private and await self._shared(channel)):
            raise TurnedAway("this channel is shared with another workspace: use one of our own")
        told = (await self._ask(account)).get("user") or {}
        why = _unfit(told, self._team)
        if why:
            raise TurnedAway(f"{why}: the bot takes no commands from this account")
        try:
            return self._identities.at_door(
                Identity(door="slack", subject=f"{self._team}/{ask.user}")
            )
        except Stranger as problem:
            raise TurnedAway(str(problem)) from problem

    def forget(self, user: str) -> None:
        """Slack says that this account changed."""
        self._forget((USER, user))

    def forget_channel(self, channel: str) -> None:
        """Slack says that this channel changed: it may be shared now."""
        self._forget((CHANNEL, channel))

    def _forget(self, name: Name) -> None:
        self._known.pop(name, None)
        self._under_way.pop(name, None)  # it may have been asked before the change

    async def _shared(self, channel: Name) -> bool:
        """Whether Slack knows the channel as shared; one that the bot cannot see is not known."""
        try:
            told = await self._ask(channel)
        except TurnedAway:
            return False
        return _seen_outside(told)

    def channel_name(self, channel: str) -> str:
        """What people call it, as Slack told last; its id before."""
        known = self._known.get((CHANNEL, channel))
        name = ((known.told.get("channel") or {}) if known else {}).get("name")
        return f"#{name}" if name else channel

    async def keep_inside(self, channel: str) -> None:
        """Let nothing of ours stand where another company reads it. Raises Said, Limited, Unsent,
        Unanswered; what Slack does not say is not assumed.
        """
        if not channel.startswith(("C", "G")):
            return
        name = (CHANNEL, channel)
        known = self._known.get(name)
        if known is None or self._age(name) >= FRESH:
            try:
                known = _Known(at=_now(), told=await asyncio.shield(self._begin(name)))
            except Said as problem:
                if problem.error != "missing_scope":
                    raise
                why = f"{channel}: without groups:read Slack does not say whether it is shared"
                raise Said(SHARED, why) from problem
            except (Limited, Unsent, Unanswered):
                if known is None or self._age(name) >= STALE:
                    raise
        if _seen_outside(known.told):
            raise Said(SHARED, f"{channel} is shared with another workspace")

    def findings(self) -> tuple[Finding, ...]:
        """For `doctor`: channels in which the bot was meant to post, and others read."""
        shared = [
            channel
            for method, channel in self._expected
            if method == CHANNEL and self._outside((method, channel))
        ]
        text = (
            "is shared with another workspace: no card and no page's text is posted there, and no"
            " command taken; name a channel of our own"
        )
        return tuple(Finding(False, f"Slack: channel {channel} {text}") for channel in shared)

    def _outside(self, name: Name) -> bool:
        known = self._known.get(name)
        return known is not None and _seen_outside(known.told)

    async def _ask(self, name: Name) -> Mapping[str, Any]:
        known = self._known.get(name)
        if known is not None and self._age(name) < FRESH:
            return known.told
        try:
            return await asyncio.wait_for(asyncio.shield(self._begin(name)), PATIENCE)
        except (TimeoutError, Said, Limited, Unsent, Unanswered) as problem:
            gone = isinstance(problem, Said) and problem.error == "user_not_found"
            if known is not None and self._age(name) < STALE and not gone:
                return known.told
            raise TurnedAway(f"Slack does not say who you are ({problem}); try again") from problem

    def _age(self, name: Name) -> float:
        known = self._known.get(name)
        return _now() - known.at if known is not None else STALE

    def _begin(self, name: Name) -> "asyncio.Task[Mapping[str, Any]]":
        """The question to Slack, or the same one that is under way."""
        task = self._under_way.get(name)
        if task is None:
            task = self._under_way[name] = asyncio.create_task(self._tell(name))
            task.add_done_callback(lambda done: self._told(name, done))
        return task

    async def _tell(self, name: Name) -> Mapping[str, Any]:
        method, value = name
        return await self._web.get(method, {_FIELD[method]: value})

    def _told(self, name: Name, task: "asyncio.Task[Mapping[str, Any]]") -> None:
        """Remember the answer, unless it was forgotten while it was on its way."""
        failed = task.cancelled() or task.exception() is not None
        if self._under_way.get(name) is not task:
            return
        del self._under_way[name]
        if failed:
            return
        if len(self._known) >= MOST_KEPT:
            self._known.pop(next(iter(self._known)))
        self._known[name] = _Known(at=_now(), told=task.result())


def _now() -> float:
    return asyncio.get_running_loop().time()


def _seen_outside(told: Mapping[str, Any]) -> bool:
    """Whether another workspace reads the channel, or was asked to."""
    channel = told.get("channel") or {}
    return bool(channel.get("is_ext_shared") or channel.get("is_pending_ext_shared"))


def _unfit(account: Mapping[str, Any], team: str) -> str:
    """Why an account may not command, empty when it may."""
    if account.get("deleted"):
        return "the account is deactivated"
    if account.get("is_bot"):
        return "it is a bot's"
    if account.get("is_restricted") or account.get("is_ultra_restricted"):
        return "it is a guest's"
    if account.get("is_stranger") or account.get("team_id") not in {team, None}:
        return "it belongs to another workspace"
    return ""
