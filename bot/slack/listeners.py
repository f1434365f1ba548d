"""What Bolt hands over: commands, clicks, forms, mentions. Each is acknowledged, whatever happens.

Registered by `bot.slack.door`. Bolt acknowledges when a listener returns: one for a command that
changes something returns once it is committed, one that only asks at once; the answer follows.
"""

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from slack_bolt import BoltResponse
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.error import BoltUnhandledRequestError

from bot.commands import Verb
from bot.phrases import Command, Misread, straighten
from bot.replies import refused
from bot.slack import asks, blocks
from bot.slack.afterwards import Afterwards
from bot.slack.answering import Answering, privately
from bot.slack.asks import Ask
from bot.slack.board import Board
from bot.slack.clerk import Answer, Clerk, not_understood, shown
from bot.slack.loop_lag import LoopLag
from bot.slack.memberships import Memberships
from bot.slack.stories import Stories
from bot.slack.visitors import Visitors
from bot.slack.web import Limited, Said, Unanswered, Unsent, Web
from config.ids import RunId

log = logging.getLogger(__name__)

ACK_PATIENCE = 2.0
"""Seconds that an acknowledgement waits at most for the commit; Slack gives up after three."""
ANYTHING = re.compile(".*", re.DOTALL)
OUT_OF_DATE = "this card is out of date: it is shown anew, decide there"
NOT_YET = "not recorded yet; the answer follows"

Ack = Callable[..., Awaitable[Any]]
Body = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """Everything that people do in Slack."""

    command: str
    """The slash command, as `/ops`."""
    clerk: Clerk
    answering: Answering
    after: Afterwards
    board: Board
    stories: Stories
    visitors: Visitors
    memberships: Memberships
    web: Web
    lag: LoopLag
    bot_user: Callable[[], str]

    def register(self, app: AsyncApp) -> None:
        """Hear everything: what nobody hears is not acknowledged, and the person sees an error."""
        app.middleware(self.on_rate_limit)
        app.command(ANYTHING)(self.on_command)
        app.action(ANYTHING)(self.on_click)
        app.view(ANYTHING)(self.on_form)
        app.options(ANYTHING)(self.on_options)
        app.shortcut(ANYTHING)(self.on_shortcut)
        app.event("app_mention")(self.on_message)
        app.event("message")(self.on_message)
        app.event(ANYTHING)(self.on_event)
        app.error(self.on_error)

    # -- commands -----------------------------------------------------------------------------

    async def on_command(self, ack: Ack, body: Body) -> None:
        """A slash command."""
        ask = asks.from_command(body)
        if body.get("command") != self.command:
            await ack(**privately(shown(refused(f"this bot listens to {self.command}")).content))
            return
        try:
            command = self.clerk.read(ask)
        except Misread as problem:
            await ack(**privately(not_understood(problem).content))
            return
        if command.changes:
            await self._acknowledge(ack, ask, command)
            return
        repeated = self.clerk.knows(ask)
        await ack()
        if not repeated:
            self.after.begin(ask, self._tell(ask, self.clerk.begin(ask, command)))

    async def _acknowledge(self, ack: Ack, ask: Ask, command: Command) -> None:
        """Commit, then acknowledge with the answer; when the commit is slow the answer follows."""
        task = self.clerk.begin(ask, command)
        done, _ = await asyncio.wait({task}, timeout=self._patience)
        if done:
            await ack(**privately(task.result().content))
            self._refresh(command, task.result())
            return
        await ack(**privately(shown(refused(NOT_YET), command).content))
        self.after.begin(ask, self._tell(ask, task))

    @property
    def _patience(self) -> float:
        return self.lag.shortened(ACK_PATIENCE)

    async def _tell(self, ask: Ask, task: "asyncio.Task[Answer]") -> None:
        answer = await task
        await self.answering.tell(ask, answer.content)

    # -- buttons and forms --------------------------------------------------------------------

    async def on_click(self, ack: Ack, body: Body) -> None:
        """A button: the words that it says, as if typed by whoever clicked."""
        pressed = (body.get("actions") or [{}])[0]
        kind = str(pressed.get("action_id", "")).partition(".")[0]
        ask = asks.from_click(body, str(pressed.get("value") or ""))
        if kind == blocks.ASK_REASON and ask.text:
            await ack()
            self.after.begin(ask, self._open_form(ask))
        elif kind == blocks.COMMAND and ask.text:
            await self._clicked(ack, ask)
        else:
            await ack()
            self.after.begin(ask, self._out_of_date(ask, body))

    async def _clicked(self, ack: Ack, ask: Ask) -> None:
        repeated = self.clerk.knows(ask)
        try:
            command = self.clerk.read(ask)
        except Misread:
            await ack()
            self.after.begin(ask, self.answering.tell(ask, shown(refused(OUT_OF_DATE)).content))
            return
        task = self.clerk.begin(ask, command)
        await asyncio.wait({task}, timeout=self._patience)
        await ack()
        self.after.begin(ask, self._carried_out(ask, command, task, told=repeated))

    async def _carried_out(
        self, ask: Ask, command: Command, task: "asyncio.Task[Answer]", *, told: bool
    ) -> None:
        """Tell the person unless that was done before, and show the run as it is now."""
        if not told:
            if not task.done():  # a click says nothing by itself, and Slack sends none twice
                await self.answering.tell(ask, shown(refused(NOT_YET), command).content)
            await self._tell(ask, task)
        self._refresh(command, await task)

    async def _out_of_date(self, ask: Ask, body: Body) -> None:
        await self.answering.tell(ask, shown(refused(OUT_OF_DATE)).content)
        await self._refresh_at(body)

    async def _open_form(self, ask: Ask) -> None:
        """Ask why; a trigger that ran out gives a button with a new one."""
        view = blocks.reason_form(ask.text, ask.channel)
        try:
            await self.web.call("views.open", {"trigger_id": ask.key, "view": view})
        except (Said, Limited, Unsent, Unanswered) as problem:
            log.info("the form could not be opened: %s", problem)
            await self.answering.tell(ask, blocks.form_again(ask.text))

    async def on_form(self, ack: Ack, body: Body) -> None:
        """The form with a reason, sent off; any other is closed."""
        view = body.get("view") or {}
        if body.get("type") != "view_submission" or view.get("callback_id") != blocks.REASON_FORM:
            await ack()
            return
        carried = json.loads(view.get("private_metadata") or "{}")
        values = view["state"]["values"][blocks.REASON_BLOCK][blocks.REASON_FIELD]
        ask = asks.from_form(body, str(carried.get("channel", "")), str(carried.get("command", "")))
        command = self.clerk.read(ask)
        reason = straighten(str(values.get("value") or ""))
        command = replace(command, words=(*command.words, reason))
        task = self.clerk.begin(ask, command)
        done, _ = await asyncio.wait({task}, timeout=self._patience)
        if done and not task.result().good:
            why = blocks.escaped(" ".join(task.result().reply.lines), blocks.MOST_ECHO)
            await ack(response_action="errors", errors={blocks.REASON_BLOCK: why})
            self._refresh(command, task.result())
        else:
            await ack()
            self.after.begin(ask, self._carried_out(ask, command, task, told=False))

    async def on_options(self, ack: Ack) -> None:
        """No select of ours asks for options."""
        await ack(options=[])

    async def on_shortcut(self, ack: Ack) -> None:
        """None is ours; the app's settings may still define one."""
        await ack()

    # -- events -------------------------------------------------------------------------------

    async def on_message(self, body: Body) -> None:
        """A mention, or a direct message. Slack sends again what is not acknowledged, so one that
        changes something is acknowledged however late its commit is, and never before.
        """
        event = body.get("event") or {}
        if event.get("type") == "message" and event.get("channel_type") != "im":
            return
        ask = asks.from_message(body, self.bot_user())
        if ask is None:
            return
        repeated = self.clerk.knows(ask)
        ask = await self._in_thread(ask)
        try:
            command = self.clerk.read(ask)
        except Misread as problem:
            self.after.begin(ask, self.answering.tell(ask, not_understood(problem).content))
            return
        task = self.clerk.begin(ask, command)
        if command.changes:
            await asyncio.wait({task})
        if not repeated:
            self.after.begin(ask, self._tell(ask, task))

    async def _in_thread(self, ask: Ask) -> Ask:
        """`abort` in the thread of a run's card means that run."""
        if not ask.thread:
            return ask
        run = await asyncio.to_thread(self.stories.run_at, ask.channel, ask.thread)
        if run is None:
            return ask
        text = asks.about_run(ask.text, run)
        return replace(ask, text=text, at_card=asks.names_run(text, run))

    async def on_event(self, body: Body) -> None:
        """Accounts, groups and channels change."""
        event = body.get("event") or {}
        if str(event.get("type", "")).startswith("subteam_"):
            self.memberships.renew()
        elif event.get("type") == "user_change":
            self.visitors.forget(str((event.get("user") or {}).get("id", "")))
        elif event.get("type") in {"channel_shared", "channel_unshared"}:
            self.visitors.forget_channel(str(event.get("channel", "")))

    # -- what else comes ----------------------------------------------------------------------

    async def on_rate_limit(self, body: Body, next: Callable[[], Awaitable[Any]]) -> Any:  # noqa: A002
        """Slack's notice that it held events back has no event in it."""
        if body.get("type") == "app_rate_limited":
            log.warning("Slack held events back: more than it delivers in an hour")
            return BoltResponse(status=200)
        return await next()

    async def on_error(self, error: Exception, body: Body, ack: Ack) -> BoltResponse:
        """Anything that failed in our own code is acknowledged, logged, and told with a number."""
        if isinstance(error, BoltUnhandledRequestError):
            return BoltResponse(status=200)
        await ack()
        asked: Ask | None
        if "event" in body:
            asked = asks.from_message(body, self.bot_user())
        else:
            asked = asks.from_click(body, "") if "container" in body else asks.from_command(body)
        self.after.begin(asked, self.after.failed(asked, error))
        return BoltResponse(status=200)

    def _refresh(self, command: Command, answer: Answer) -> None:
        """Show the run as it is now; also where the click came too late."""
        named = command.words[0] if command.words else ""
        run = answer.run or (RunId(named) if named.startswith("run-") else None)
        if run is not None and command.verb is not Verb.PLAN:
            self.board.refresh(run)

    async def _refresh_at(self, body: Body) -> None:
        container = body.get("container") or {}
        channel, message = str(container.get("channel_id")), str(container.get("message_ts"))
        run = await asyncio.to_thread(self.stories.run_at, channel, message)
        if run is not None:
            self.board.refresh(run)
