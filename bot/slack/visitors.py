"""Who may be spoken with: our workspace, real members, channels that no other company sees.

Asked on the acknowledging path, so what Slack says of a person or a channel is remembered for a
while. When Slack cannot be asked, the last answer counts for an hour; without one the person is
turned away.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.identities import Identities, Stranger
from bot.slack.asks import Ask
from bot.slack.web import Limited, Said, Unanswered, Unsent, Web
from config.actors import Actor, Identity

FRESH = 120.0
"""Seconds for which an answer of Slack's is not asked again."""
STALE = 3600.0
"""Seconds for which it counts when Slack cannot be asked."""
PATIENCE = 1.5
"""Seconds that the acknowledging path waits for it."""
MOST_KEPT = 5000


class TurnedAway(Exception):
    """Not somebody to whom the bot answers; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    at: float
    told: Mapping[str, Any]


class Visitors:
    """Accounts and channels as Slack describes them."""

    def __init__(self, web: Web, identities: Identities, team: str) -> None:
        """`team` is the configured workspace."""
        self._web = web
        self._identities = identities
        self._team = team
        self._known: dict[str, _Known] = {}

    async def admit(self, ask: Ask) -> Actor:
        """The person who asks. Raises TurnedAway."""
        if ask.team != self._team:
            raise TurnedAway(
                f"you are in workspace {ask.team or '?'}; this bot serves {self._team}"
            )
        if ask.shared or await self._shared(ask.channel):
            raise TurnedAway("this channel is shared with another workspace: use one of our own")
        account = (await self._ask("users.info", "user", ask.user)).get("user") or {}
        why = _unfit(account, self._team)
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
        self._known.pop(f"users.info {user}", None)

    async def _shared(self, channel: str) -> bool:
        """Whether Slack knows the channel as shared; one that the bot cannot see is not known."""
        if not channel or channel.startswith("D"):
            return False
        try:
            told = await self._ask("conversations.info", "channel", channel)
        except TurnedAway:
            return False
        return bool((told.get("channel") or {}).get("is_ext_shared"))

    async def _ask(self, method: str, field: str, value: str) -> Mapping[str, Any]:
        name = f"{method} {value}"
        now = asyncio.get_running_loop().time()
        known = self._known.get(name)
        if known is not None and now - known.at < FRESH:
            return known.told
        try:
            told = await asyncio.wait_for(self._web.get(method, {field: value}), PATIENCE)
        except (TimeoutError, Said, Limited, Unsent, Unanswered) as problem:
            if known is not None and now - known.at < STALE:
                return known.told
            raise TurnedAway(f"Slack does not say who you are ({problem}); try again") from problem
        if len(self._known) >= MOST_KEPT:
            self._known.pop(next(iter(self._known)))
        self._known[name] = _Known(at=now, told=told)
        return told


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
