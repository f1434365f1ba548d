"""Who is in which of the configured user groups, asked of Slack now and then.

Run by `bot.slack.door` as a task. A group that Slack does not tell keeps its last members: an old
list can only give, never take.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping

from bot.diagnostics import Finding
from bot.slack.web import Limited, Said, Unanswered, Unsent, Web

log = logging.getLogger(__name__)

Publish = Callable[[Mapping[str, frozenset[str]], frozenset[str]], None]

EVERY = 120.0
"""Seconds between two questions."""
AFTER_FAILURE = 15.0


class Memberships:
    """The newest members of each group."""

    def __init__(self, web: Web, team: str, groups: Iterable[str], publish: Publish) -> None:
        """`publish` takes Slack subjects with their groups, and which groups are known."""
        self._web = web
        self._team = team
        self._publish = publish
        self._members: dict[str, frozenset[str]] = {}
        self._groups = tuple(groups)
        self._trouble: dict[str, str] = {}
        self._news = asyncio.Event()

    def renew(self) -> None:
        """Slack says that a group changed."""
        self._news.set()

    async def run(self) -> None:
        """Until cancelled."""
        while self._groups:
            self._news.clear()
            for group in self._groups:
                await self._ask(group)
            if self._members:
                self._publish(self._by_person(), frozenset(self._members))
            with contextlib.suppress(asyncio.TimeoutError):
                pause = AFTER_FAILURE if self._trouble else EVERY
                await asyncio.wait_for(self._news.wait(), pause)

    def findings(self) -> tuple[Finding, ...]:
        """For `doctor`."""
        return tuple(
            Finding(False, f"Slack: members of user group {group} are not known: {why}")
            for group, why in sorted(self._trouble.items())
        )

    async def _ask(self, group: str) -> None:
        try:
            told = await self._web.get("usergroups.users.list", {"usergroup": group})
        except (Said, Limited, Unsent, Unanswered) as problem:
            self._trouble[group] = str(problem)
            return
        self._members[group] = frozenset(str(user) for user in told.get("users", []))
        self._trouble.pop(group, None)
        if not self._members[group]:
            self._trouble[group] = "Slack names none; a disabled group has no members"

    def _by_person(self) -> dict[str, frozenset[str]]:
        """Slack subjects to groups."""
        people = frozenset[str]().union(*self._members.values())
        return {
            f"{self._team}/{user}": frozenset(
                group for group, members in self._members.items() if user in members
            )
            for user in people
        }
