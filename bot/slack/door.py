"""The Slack door: the real Bolt over Socket Mode in front of the desk, and cards behind it.

Opened by `bot.serve`. Whatever Slack does (down, deaf, throttled), runs go on: `open` returns at
once, and everything that is sent waits for Slack in tasks of its own.
"""

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult

from actions.catalogue import Ground
from bot.diagnostics import Finding
from bot.slack.access import Access
from bot.slack.afterwards import Afterwards
from bot.slack.answering import Answering
from bot.slack.board import Board
from bot.slack.clerk import Clerk
from bot.slack.connection import Connection, Watch
from bot.slack.courses import Course
from bot.slack.keeper import Pace
from bot.slack.listeners import Listeners
from bot.slack.loop_lag import LoopLag
from bot.slack.memberships import Memberships
from bot.slack.mention import SlackMentions
from bot.slack.outbox import Outbox
from bot.slack.pages import Pages
from bot.slack.places import Places
from bot.slack.poster import Poster
from bot.slack.sockets import Line
from bot.slack.stories import Stories
from bot.slack.visitors import Visitors
from bot.slack.web import Limited, Said, Unanswered, Unsent, Web
from bot.wiring import Bot
from config.ids import ClusterName
from config.settings import Slack

log = logging.getLogger(__name__)

SCOPES = frozenset(
    "app_mentions:read channels:history channels:read chat:write commands groups:history"
    " groups:read im:history users:read usergroups:read".split()
)
"""What the app needs."""
PACE = Pace()
WATCH = Watch()
AUTH_PAUSE = 2.0
LONGEST_AUTH_PAUSE = 60.0
_bolt_log = logging.getLogger("bot.slack.bolt")
_bolt_log.setLevel(logging.ERROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Self:
    """Who the bot is in Slack."""

    user: str
    bot: str
    team: str


class SlackDoor:
    """Lives in the event loop in which it was made."""

    def __init__(
        self,
        bot: Bot,
        ground: Ground,
        mentions: SlackMentions,
        pace: Pace = PACE,
        watch: Watch = WATCH,
    ) -> None:
        """Reaches nothing before `open`. Needs `settings.slack`."""
        settings = bot.settings.slack
        if settings is None:
            raise ValueError("the settings have no section `slack`: there is no such door")
        self._settings: Slack = settings
        self._bot = bot
        self._ground = ground
        self._mentions = mentions
        self._own: _Self | None = None
        self._trouble = ""
        self._work: list[asyncio.Task[None]] = []
        self._web = Web(settings.api_url, lambda: ground.secrets.resolve(settings.bot_token))
        self._outbox = Outbox(self._web.call)
        self._looks = Outbox(self._web.get)
        stories = Stories(bot.settings, bot.parts, bot.answers, bot.identities)
        expected = {one.channel for one in bot.settings.clusters.values()}
        expected |= {one.channel for one in bot.settings.pages}
        channels = sorted(channel for channel in expected if channel)
        self._visitors = Visitors(self._web, bot.identities, settings.team, channels)
        poster = Poster(self._outbox, self._looks, stories.bot, self._visitors.keep_inside)
        self._board = Board(stories, poster, pace, ground.clock.now().wall)
        channels_of = {ClusterName(key): one.channel for key, one in bot.settings.clusters.items()}
        bot.desk.elsewhere = Places(channels_of, self._visitors.channel_name).elsewhere
        self._clerk = Clerk(bot.desk, bot.answers, self._visitors)
        self._memberships = Memberships(
            self._web, settings.team, bot.settings.groups, bot.identities.groups
        )
        self._app = self._bolt()
        self._connection = Connection(self._line, watch)
        self._access = Access(
            self._web, bot.parts.ledger, lambda: self._connection.refused, watch.tokens
        )
        answering = Answering(self._web, self._outbox)
        self._after = Afterwards(answering)
        self._lag = LoopLag()
        Listeners(
            command=bot.settings.bot.command,
            clerk=self._clerk,
            answering=answering,
            after=self._after,
            board=self._board,
            stories=stories,
            visitors=self._visitors,
            memberships=self._memberships,
            web=self._web,
            lag=self._lag,
            bot_user=lambda: self._own.user if self._own else "",
        ).register(self._app)

    @property
    def connected(self) -> bool:
        """Whether commands reach the bot."""
        return self._connection.connected

    async def open(self) -> None:
        """Begin to connect, to post cards and to page."""
        pages = Pages(self._web, self._visitors.keep_inside, asyncio.get_running_loop())
        self._mentions.send = pages.send
        self._bot.doctor.doors.append(self.findings)
        self._bot.answers.notices.append(self._access.lines)
        work = (self._listen(), self._board.run(), self._memberships.run(), self._access.run())
        for part in work:
            self._start(part)

    async def close(self) -> None:
        """Hang up; what was not sent is sent after the next start."""
        self._mentions.send = None
        self._bot.doctor.doors.remove(self.findings)
        self._bot.answers.notices.remove(self._access.lines)
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        await self._connection.close()
        await self._after.close()
        await self._board.close()
        await self._looks.close()
        await self._outbox.close()
        self._clerk.close()
        await self._web.close()

    def findings(self) -> tuple[Finding, ...]:
        """For `doctor`; called from other threads."""
        found = [
            *self._access.findings(),
            *self._connection.findings(),
            *self._memberships.findings(),
            *self._visitors.findings(),
        ]
        if self._trouble:
            found.append(Finding(False, f"Slack: {self._trouble}"))
        if self._web.scopes:
            missing = sorted(SCOPES - self._web.scopes)
            found.extend(
                Finding(False, f"Slack: scope {scope} is missing; add it and reinstall the app")
                for scope in missing
            )
        found.extend(self._board.findings())
        return tuple(found)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._work.append(asyncio.create_task(work))

    async def _listen(self) -> None:
        """Find out who we are, then keep a socket open."""
        if await self._introduced():
            self._start(self._visitors.run())
            await self._connection.run()

    async def _introduced(self) -> bool:
        """Ask Slack until it says who the bot is; False when this app can never work."""
        pause = AUTH_PAUSE
        while True:
            try:
                told = await self._web.call("auth.test", {})
            except (Said, Limited, Unsent, Unanswered) as problem:
                self._trouble = f"auth.test failed: {problem}"
                log.warning("Slack is not there: %s", self._trouble)
                stopped = isinstance(problem, Said) and problem.course is Course.STOP
                pause = LONGEST_AUTH_PAUSE if stopped else min(LONGEST_AUTH_PAUSE, pause * 2)
                await asyncio.sleep(pause)
                continue
            team = str(told.get("team_id", ""))
            if team != self._settings.team:
                self._trouble = (
                    f"the token is of workspace {team}, slack.team is {self._settings.team}:"
                    " put one of them right and restart"
                )
                log.error("Slack: %s", self._trouble)
                return False
            self._own = _Self(user=str(told["user_id"]), bot=str(told["bot_id"]), team=team)
            self._trouble = ""
            return True

    def _bolt(self) -> AsyncApp:
        async def authorize() -> AuthorizeResult:  # Bolt passes arguments by name, `self` too
            return self._authorize()

        return AsyncApp(
            client=self._web.client,
            authorize=authorize,
            logger=_bolt_log,
            raise_error_for_unhandled_request=True,
            process_before_response=True,  # else Bolt acknowledges an event before it is committed
        )

    def _authorize(self) -> AuthorizeResult:
        """Bolt asks with each envelope; the answer is the one from the start."""
        own = self._own
        if own is None:
            raise RuntimeError("an envelope came before Slack said who the bot is")
        token = self._ground.secrets.resolve(self._settings.bot_token)
        return AuthorizeResult(
            enterprise_id=None,
            team_id=own.team,
            bot_user_id=own.user,
            bot_id=own.bot,
            bot_token=token,
        )

    def _line(self) -> Line:
        token = self._ground.secrets.resolve(self._settings.app_token)
        return Line(self._app, token, self._web.client)
