"""Takes what somebody said to the desk, and brings the answer back as Slack shows it.

Called by `bot.slack.listeners` in the event loop; the desk itself is asked in threads, those that
change something apart from those that only read, so that a slow look never holds up a halt.
"""

import asyncio
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import TypeVar

from audit_log.errors import StoreError
from bot.answers import Answers
from bot.desk import Desk, Request
from bot.identities import UNKNOWN, Stranger
from bot.phrases import Command, Misread, from_slack, parse
from bot.replies import Reply, ReplyKind, misread, refused
from bot.slack import blocks
from bot.slack.asks import Ask
from bot.slack.blocks import Content
from bot.slack.places import STOPS
from bot.slack.visitors import TurnedAway, Visitors
from config.actors import Actor, Door
from config.ids import RunId
from runbooks.explain import Button

Key = TypeVar("Key")
Value = TypeVar("Value")

ACTORS = 32
READERS = 8
READY = 30.0
"""Seconds that threads have to begin."""
REPEAT = 10.0
"""Seconds within which the same words of the same person are asked about, not carried out."""
MOST_REMEMBERED = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the person is shown."""

    reply: Reply
    content: Content
    run: RunId | None = None

    @property
    def good(self) -> bool:
        """Whether it was done."""
        return self.reply.kind in {ReplyKind.DONE, ReplyKind.STARTED}


class Clerk:
    """Between the listeners and the desk."""

    def __init__(self, desk: Desk, answers: Answers, visitors: Visitors) -> None:
        """All threads begin here."""
        self._desk = desk
        self._answers = answers
        self._visitors = visitors
        self._acting = _begun(ACTORS, "slack-desk")
        self._reading = _begun(READERS, "slack-reads")
        self._under_way: OrderedDict[str, asyncio.Task[Answer]] = OrderedDict()
        self._said: OrderedDict[tuple[str, str, str], float] = OrderedDict()

    def close(self) -> None:
        """Take no more; what is under way is finished by its threads."""
        self._acting.shutdown(wait=False)
        self._reading.shutdown(wait=False)

    def read(self, ask: Ask) -> Command:
        """The command that was typed. Raises Misread."""
        return parse(self._desk.heard(from_slack(ask.text)))

    def begin(self, ask: Ask, command: Command) -> "asyncio.Task[Answer]":
        """Carry it out; the same key again gives the same answer and is not carried out again."""
        known = self._under_way.get(ask.key) if ask.key else None
        if known is not None:
            return known
        task = asyncio.create_task(self._carry_out(ask, command))
        if ask.key:
            _keep(self._under_way, ask.key, task)
        return task

    def knows(self, ask: Ask) -> bool:
        """Whether this very act came before."""
        return bool(ask.key) and ask.key in self._under_way

    async def _carry_out(self, ask: Ask, command: Command) -> Answer:
        try:
            actor = await self._visitors.admit(ask)
        except TurnedAway as problem:
            return await self._turned_away(problem, command)
        changes = command.changes
        if changes and ask.direct and not _holds_back(command):
            text = "say it in a channel where others see it; here the bot only answers questions"
            return shown(refused(text), command)
        if changes and not ask.clicked and self._repeated(ask, command):
            return _again(command)
        answer = await self._submit(ask, actor, command)
        if not answer.good:
            self._said.pop(_words(ask, command), None)
        return answer

    async def _turned_away(self, problem: TurnedAway, command: Command) -> Answer:
        """Refused and recorded; the record names nobody."""
        because = UNKNOWN if isinstance(problem.__cause__, Stranger) else str(problem)
        loop = asyncio.get_running_loop()
        try:
            reply = await loop.run_in_executor(
                self._acting, self._desk.turn_away, Door.SLACK, str(problem), because
            )
        except StoreError:  # a full disk lets nobody in either
            reply = refused(str(problem))
        return shown(reply, command)

    async def _submit(self, ask: Ask, actor: Actor, command: Command) -> Answer:
        request = Request(
            actor=actor,
            door=Door.SLACK,
            command=command,
            key=ask.key,
            place=ask.channel,
            at_card=ask.at_card,
        )
        threads = self._acting if command.changes else self._reading
        loop = asyncio.get_running_loop()
        try:
            reply = await loop.run_in_executor(threads, self._desk.submit, request)
        except StoreError as problem:
            text = f"it cannot be recorded, so nothing was done: {problem}"
            return shown(refused(text), command)
        return shown(reply, command)

    def _repeated(self, ask: Ask, command: Command) -> bool:
        """Whether this person said just this here a moment ago; remembers it."""
        now = asyncio.get_running_loop().time()
        words = _words(ask, command)
        before = self._said.pop(words, None)
        _keep(self._said, words, now)
        return before is not None and now - before < REPEAT


def _begun(count: int, name: str) -> ThreadPoolExecutor:
    """Threads that run already. Whoever begins one waits until the machine lets it run: on a busy
    one the event loop did so for each of the first commands, and envelopes were not acknowledged.
    """
    threads = ThreadPoolExecutor(count, thread_name_prefix=name)
    together = Barrier(count)
    for _ in range(count):
        threads.submit(together.wait, READY)
    return threads


def shown(reply: Reply, command: Command | None = None) -> Answer:
    """A reply for Slack."""
    echo = command.text if command is not None else ""
    return Answer(reply=reply, content=blocks.answer(reply.lines, echo), run=reply.run)


def not_understood(problem: Misread) -> Answer:
    """The answer to what is no command."""
    return shown(misread(str(problem)))


def _holds_back(command: Command) -> bool:
    return command.verb in STOPS and not command.flags and not command.options


def _again(command: Command) -> Answer:
    reply = refused("you said exactly this a moment ago, and it was taken. Once more?")
    button = Button(label="Run again", command=command.text)
    content = blocks.answer(reply.lines, command.text, [button])
    return Answer(reply=reply, content=content)


def _words(ask: Ask, command: Command) -> tuple[str, str, str]:
    return ask.user, ask.channel, command.text


def _keep(kept: OrderedDict[Key, Value], key: Key, value: Value) -> None:
    kept[key] = value
    if len(kept) > MOST_REMEMBERED:
        kept.popitem(last=False)
