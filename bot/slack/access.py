"""Whether Slack still takes the app's tokens: asked now and then, said in `status`, paged about once.

Run by `bot.slack.door` as a task. A revoked token or a removed app ends nothing but Slack: runs go on,
commands come by the command line, and with a token that works everything is as before.
"""

import asyncio
import json
import logging
from collections.abc import Callable

from audit_log.errors import StoreError
from audit_log.ledger import Ledger
from audit_log.records import Event, EventKind
from bot.diagnostics import Finding
from bot.slack.web import Limited, Said, Unanswered, Unsent, Web
from config.actors import ENGINE
from config.json_values import JsonMap

log = logging.getLogger(__name__)

REFUSALS = frozenset(
    "account_inactive app_uninstalled invalid_auth not_allowed_token_type not_authed token_expired"
    " token_revoked".split()
)
"""Slack's words for a token that no waiting makes good."""


class Access:
    """The two tokens, as Slack sees them."""

    def __init__(
        self, web: Web, ledger: Ledger, socket_refused: Callable[[], str], every: float
    ) -> None:
        """`socket_refused` tells with which word the app-level token was refused last."""
        self._web = web
        self._ledger = ledger
        self._socket_refused = socket_refused
        self._every = every
        self._lost = ""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            lost = await self._refusal()
            if lost is not None:
                self._lost = lost
                try:
                    await asyncio.to_thread(self._page, lost)
                except StoreError as problem:  # the next question pages
                    log.warning("the page about Slack's tokens cannot be recorded: %s", problem)
            await asyncio.sleep(self._every)

    def lines(self) -> tuple[str, ...]:
        """For `status`."""
        return (self._lost,) if self._lost else ()

    def findings(self) -> tuple[Finding, ...]:
        """For `doctor`."""
        return tuple(Finding(False, line) for line in self.lines())

    async def _refusal(self) -> str | None:
        """What is wrong, empty where nothing is, None where Slack does not say."""
        try:
            await self._web.call("auth.test", {})
        except Said as problem:
            return _told("bot_token", problem.error) if problem.error in REFUSALS else None
        except (Limited, Unsent, Unanswered):
            return None
        word = self._socket_refused()
        if word in REFUSALS:
            return _told("app_token", word)
        return None if word else ""

    def _page(self, lost: str) -> None:
        """Page where nobody was, and say that it is over where somebody was; also after a restart."""
        key = f"nodewarden/{self._ledger.instance}/slack"
        why = lost or "Slack: the tokens work again"
        data: JsonMap = {
            "key": key,
            "summary": f"nodewarden: {why}"[:200],
            "details": json.dumps({"why": why}),
            "resolved": not lost,
        }
        event = Event(kind=EventKind.PAGE_INTENDED, actor=ENGINE.id, data=data)
        paged = self._ledger.query("SELECT 1 FROM pages WHERE key = ? AND resolved = 0", (key,))
        if bool(paged) != bool(lost):  # nobody else pages under this key
            self._ledger.commit(lambda transaction: transaction.append(event))


def _told(setting: str, word: str) -> str:
    return (
        f"Slack refuses slack.{setting} ({word}): install the app again, put the new token in its"
        " place, and restart the bot where it comes from the environment; until then commands come"
        " by the command line, and runs go on"
    )
