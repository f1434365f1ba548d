"""Keeps one living socket to Slack: connects, listens for the greeting, replaces what went deaf.

Run by `bot.slack.door` as a task. A connection that is open and answers pings can still deliver
nothing (bolt-python#1529), and nothing short of an event proves the contrary: Slack delivers none that
the app could cause by itself without a scope, a subscription and a visible message for it. A fresh
socket is the cheapest remedy, so one that was silent for two minutes is replaced, deaf or not; the new
one must greet first, and the old one stays a little for what is still to be acknowledged over it.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass

from bot.diagnostics import Finding
from bot.slack.sockets import Line, Socket

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """The watchdog's patience, in seconds."""

    look: float = 1.0
    greeting: float = 10.0
    """A socket that has not greeted by then is deaf."""
    silence: float = 120.0
    """Nothing was heard for so long: a fresh socket is tried. Slack gives out one a minute and more."""
    linger: float = 5.0
    """A socket that was replaced stays so long: Slack waits three seconds for an acknowledgement."""
    tokens: float = 30.0
    """Between two questions whether Slack takes the tokens."""
    longest_pause: float = 60.0
    """Between two tries of a new socket."""


class Connection:
    """The socket that is in use."""

    def __init__(self, make: Callable[[], Line], watch: Watch) -> None:
        """Connects in `run`."""
        self._make = make
        self._watch = watch
        self._line: Line | None = None
        self._tried: Line | None = None
        self._replaced = 0
        self._ours = 1
        """Sockets of ours that were open when the present one was greeted."""
        self._ending = asyncio.Event()
        self._closing: set[asyncio.Task[None]] = set()
        self.deaf = False

    async def run(self) -> None:
        """Until cancelled; returns only when Socket Mode was switched off."""
        pause = self._watch.look
        while True:
            line = await self._greeting_line()
            if line is None:
                self.deaf = True
                pause = min(self._watch.longest_pause, pause * 2)
                await asyncio.sleep(pause)
                continue
            pause = self._watch.look
            self._use(line)
            await self._until_deaf(line.client)
            if line.client.switched_off:
                log.error(
                    "Socket Mode is switched off in the app's settings: switch it on, restart"
                )
                return
            self._replaced += 1
            log.info("the Slack socket is silent; a new one is opened")

    async def close(self) -> None:
        """Hang up."""
        self._ending.set()
        if self._line is not None:
            self._let_go(self._line)
            self._line = None
        await asyncio.gather(*self._closing, return_exceptions=True)

    @property
    def connected(self) -> bool:
        """Whether a socket is open that has greeted."""
        line = self._line
        return line is not None and line.client.greeted.is_set() and not self.deaf

    @property
    def refused(self) -> str:
        """The word with which Slack refused the app-level token last, empty when it did not."""
        return self._tried.client.refused if self._tried is not None else ""

    def findings(self) -> tuple[Finding, ...]:
        """For `doctor`."""
        client = self._line.client if self._line is not None else None
        if client is not None and client.switched_off:
            return (Finding(False, "Slack: Socket Mode is switched off in the app's settings"),)
        if client is None or not self.connected:
            text = (
                "Slack: no socket delivers anything; runs go on, commands must come by another door"
            )
            return (Finding(False, text),)
        found = [Finding(True, f"Slack: connected, {self._replaced} silent sockets replaced")]
        if client.sockets > (self._ours if client.greetings == 1 else 1):
            text = (
                f"Slack: the app has {client.sockets} sockets open: another copy of the bot takes"
                " part of the commands; stop it, or give it an app of its own"
            )
            found.append(Finding(False, text))
        return tuple(found)

    async def _greeting_line(self) -> Line | None:
        """A new connection that has greeted, None when it does not."""
        line, before = self._make(), self.refused
        line.client.refused = before  # until Slack says something else
        self._tried = line
        connecting = asyncio.create_task(line.client.connect())
        greeted = False
        try:
            await asyncio.wait_for(line.client.greeted.wait(), self._watch.greeting)
            greeted = True
            self._ours = 1 + len(self._closing) + (self._line is not None)
        except TimeoutError:
            log.warning("Slack opened no socket that greets")
        finally:
            connecting.cancel()
            if not greeted:
                self._let_go(line)
        return line if greeted else None

    def _use(self, line: Line) -> None:
        """Take the new one first, then let the old one go."""
        old, self._line = self._line, line
        self.deaf = False
        if old is not None:
            self._let_go(old, self._watch.linger)

    def _let_go(self, line: Line, linger: float = 0.0) -> None:
        task = asyncio.create_task(self._hang_up(line, linger))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _hang_up(self, line: Line, linger: float) -> None:
        if linger:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), linger)
        await line.client.hang_up()

    async def _until_deaf(self, client: Socket) -> None:
        while not client.switched_off:
            await asyncio.sleep(self._watch.look)
            now = asyncio.get_running_loop().time()
            ungreeted = not client.greeted.is_set()
            if ungreeted and now - client.connecting_since > self._watch.greeting:
                return
            if now - client.heard_at > self._watch.silence:
                return
