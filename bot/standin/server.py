"""The stand-in as one object: a loopback server in a thread of its own.

`bot.wiring` of the sandbox and the tests construct it; blocking and async bots both work against
it. It listens on 127.0.0.1 only and does nothing until `start`.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from aiohttp import web

from bot.standin.chat_methods import ChatMethods
from bot.standin.deliveries import ACK_SECONDS, RETRY_AFTER, Delivery
from bot.standin.faults import Fault, FaultKind, Faults
from bot.standin.interactions import Interactions
from bot.standin.page import Page, Panel
from bot.standin.places import Channel, Person
from bot.standin.reading import insist
from bot.standin.records import (
    BOT_USER,
    Conversation,
    Payload,
    User,
    UserGroup,
)
from bot.standin.sockets import SocketMode, abort
from bot.standin.tickets import TRIGGER_SECONDS, Tickets
from bot.standin.view_methods import ViewMethods
from bot.standin.vocabulary import PATIENCE, Message
from bot.standin.web_api import APP_TOKEN, BOT_TOKEN, Call, WebApi
from bot.standin.world import World
from config.clock import Clock

HOST = "127.0.0.1"
START_SECONDS = 10.0
LARGEST_BODY = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Strictness:
    """Which of Slack's limits hold, and what the app's manifest says."""

    sizes: bool = True
    rates: bool = True
    should_escape: bool = True
    home_enabled: bool = True
    retry_after: tuple[float, ...] = RETRY_AFTER
    ack_seconds: float = ACK_SECONDS
    trigger_seconds: float = TRIGGER_SECONDS


class SlackStandIn:
    """One Slack workspace on this machine."""

    bot_token = BOT_TOKEN
    app_token = APP_TOKEN

    def __init__(
        self,
        clock: Clock,
        *,
        strictness: Strictness | None = None,
        extra_panels: Sequence[Panel] = (),
        port: int = 0,
    ) -> None:
        strict = strictness or Strictness()
        self.world = World(clock)
        self.faults = Faults()
        tickets = Tickets(self.world, strict.trigger_seconds)
        chat = ChatMethods(world=self.world, sizes=strict.sizes)
        views = ViewMethods(
            world=self.world,
            tickets=tickets,
            sizes=strict.sizes,
            home_enabled=strict.home_enabled,
        )
        self.interactions = Interactions(
            world=self.world,
            tickets=tickets,
            chat=chat,
            views=views,
            send=self._send,
            base_url=lambda: self.url,
            should_escape=strict.should_escape,
        )
        self.api = WebApi(
            world=self.world,
            tickets=tickets,
            faults=self.faults,
            chat=chat,
            views=views,
            base_url=lambda: self.url,
            rates=strict.rates,
        )
        self.sockets = SocketMode(
            interactions=self.interactions,
            tickets=tickets,
            faults=self.faults,
            retry_after=strict.retry_after,
            ack_seconds=strict.ack_seconds,
        )
        self._page = Page(interactions=self.interactions, panels=tuple(extra_panels))
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="slack-stand-in", daemon=True)
        self._runner: web.AppRunner | None = None
        self._site: web.SockSite | None = None

    def __enter__(self) -> Self:
        """Start it for the length of a block."""
        return self.start()

    def __exit__(self, *exc: object) -> None:
        """Stop it."""
        self.stop()

    def start(self) -> Self:
        """Listen; returns once the port is known."""
        self._thread.start()
        try:
            self._await(self._open())
        except OSError:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End every connection and the thread."""
        if self._loop.is_closed():
            return
        if self._thread.is_alive():
            self._await(self._shut())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(START_SECONDS)
        self._loop.close()

    @property
    def url(self) -> str:
        """Where the web page is."""
        return f"http://{HOST}:{self._port}"

    @property
    def base_url(self) -> str:
        """What an SDK client takes as `base_url`."""
        return f"{self.url}/api/"

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _await(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(START_SECONDS)

    def _send(self, delivery: Delivery) -> None:
        self._loop.call_soon_threadsafe(self._spawn, delivery)

    def _spawn(self, delivery: Delivery) -> None:
        task = self._loop.create_task(self.sockets.deliver(delivery))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _open(self) -> None:
        app = web.Application(client_max_size=LARGEST_BODY)
        app.router.add_route("*", "/api/{method}", self.api.handle)
        app.router.add_get("/link/", self.sockets.link)
        app.router.add_post("/response/{token}", self.api.respond)
        app.router.add_post("/upload/{file}", self.api.upload)
        self._page.mount(app)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await self._listen(self._runner)

    async def _listen(self, runner: web.AppRunner) -> None:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, self._port))
        except OSError:
            listener.close()
            raise
        self._port = listener.getsockname()[1]
        self._site = web.SockSite(runner, listener)
        await self._site.start()

    async def _shut(self) -> None:
        await self.sockets.close()
        self._page.close()
        if self._runner is not None:
            await self._runner.cleanup()
        # Connections that are still being handed over would otherwise be torn out of the loop.
        pending = asyncio.all_tasks() - {asyncio.current_task()}
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    async def _vanish(self, runner: web.AppRunner) -> None:
        if self._site is not None:
            await self._site.stop()
            self._site = None
        server = runner.server
        for connection in () if server is None else tuple(server.connections):
            if isinstance(connection.transport, asyncio.Transport):
                abort(connection.transport)

    def _started(self) -> web.AppRunner:
        if self._runner is None:
            raise RuntimeError("the stand-in was not started; call start() first")
        return self._runner

    # What a test or the sandbox arranges.

    def person(self, name: str) -> Person:
        """Somebody of that name, made on first use."""
        with self.world.changing():
            user = self.world.user_named(name)
            if user is None:
                user = User(id=self.world.new_id("U"), name=name)
                self.world.users[user.id] = user
        return Person(place=self.interactions, id=user.id)

    def stranger(self, name: str) -> Person:
        """Somebody of another workspace, who can be in shared channels only."""
        with self.world.changing():
            user = User(id=self.world.new_id("U"), name=name, team_id="T99999999")
            self.world.users[user.id] = user
        return Person(place=self.interactions, id=user.id)

    def channel(self, name: str, *, private: bool = False, with_bot: bool = True) -> Channel:
        """A channel of that name, made on first use."""
        with self.world.changing():
            channel = self.world.channel_named(name)
            if channel is None:
                channel = Conversation(
                    id=self.world.new_id("C"),
                    name=name.removeprefix("#"),
                    is_private=private,
                    members=frozenset({BOT_USER} if with_bot else ()),
                )
                self.world.channels[channel.id] = channel
        return Channel(place=self.interactions, id=channel.id)

    def group(self, handle: str, members: Sequence[str], *, disabled: bool = False) -> str:
        """Make or change a user group; returns its id and tells the bot of a change."""
        people = [self.person(name) for name in members]
        with self.world.changing():
            known = self.world.group_named(handle)
            group = known or UserGroup(id=self.world.new_id("S"), handle=handle)
            users = tuple(person.id for person in people)
            self.world.groups[group.id] = replace(group, members=users, disabled=disabled)
        if known is not None:
            changed: Payload = {"type": "subteam_members_changed", "subteam_id": group.id}
            self.interactions.event(self.world.users[BOT_USER], changed)
        return group.id

    def ephemerals_of(self, name: str) -> tuple[Message, ...]:
        """Everything that only this person sees, oldest first."""
        user = self.person(name).id
        with self.world.condition:
            found = [
                Message(place=self.interactions, stored=m)
                for m in self.world.messages.values()
                if m.visible_to == user and not m.deleted
            ]
        return tuple(found)

    # What a test counts.

    @property
    def unacked(self) -> int:
        """How many envelopes were not acknowledged in Slack's three seconds."""
        with self.world.condition:
            return self.interactions.missed

    @property
    def deliveries(self) -> tuple[Delivery, ...]:
        """The newest envelopes (20,000 at most), oldest first."""
        with self.world.condition:
            return tuple(self.interactions.deliveries.values())

    def calls(self, method: str | None = None) -> tuple[Call, ...]:
        """The calls that reached the Web API, oldest first."""
        with self.world.condition:
            return tuple(c for c in self.api.calls if method in (None, c.method))

    def wait_until(self, predicate: Callable[[], bool], within: float = PATIENCE) -> None:
        """Wait for a fact about the state; an AssertionError when it does not come true."""
        insist(self.world.wait_for(predicate, within), f"did not come true within {within} s")

    def wait_for_bot(self, sockets: int = 1, within: float = PATIENCE) -> None:
        """Wait until the bot has that many sockets open that are not about to be refreshed."""

        def open_sockets() -> bool:
            return sum(not c.leaving for c in self.sockets.connections) >= sockets

        insist(self.world.wait_for(open_sockets, within), "the bot opened no socket")

    # What goes wrong.

    def rate_limit_next(self, method: str, times: int = 1, retry_after: int = 1) -> None:
        """Answer the next calls of `method` with 429."""
        self.faults.add(method, Fault(kind=FaultKind.RATE_LIMIT, number=retry_after), times)

    def fail_next(self, method: str, error: str, times: int = 1) -> None:
        """Refuse the next calls of `method` with an error of Slack's."""
        self.faults.add(method, Fault(kind=FaultKind.ERROR, error=error), times)

    def http_error_next(self, method: str, status: int = 503, times: int = 1) -> None:
        """Answer the next calls of `method` with an HTTP error."""
        self.faults.add(method, Fault(kind=FaultKind.HTTP, number=status), times)

    def cut_after_next(self, method: str, times: int = 1) -> None:
        """Process the next calls of `method`, then break the connection before the answer."""
        self.faults.add(method, Fault(kind=FaultKind.CUT), times)

    def slow(self, method: str, seconds: float) -> None:
        """Answer `method` (`*`: every method) only after `seconds`, until it is set to 0."""
        self.faults.slow(method, seconds)

    def duplicate_next(self, times: int = 1) -> None:
        """Deliver each of the next `times` envelopes twice."""
        self.faults.duplicate_next(times)

    def revoke_tokens(self) -> None:
        """Let every call fail with `token_revoked`."""
        with self.world.changing():
            self.api.tokens_revoked = True

    def grant_tokens(self) -> None:
        """End `revoke_tokens`: the app was installed again."""
        with self.world.changing():
            self.api.tokens_revoked = False

    def refresh_sockets(self, reason: str = "refresh_requested") -> None:
        """Ask the bot to come back on new sockets."""
        self._await(self.sockets.refresh(reason))

    def close_sockets(self) -> None:
        """Close the bot's sockets with a close frame."""
        self._await(self.sockets.close())

    def reset_sockets(self) -> None:
        """Break the bot's sockets with a TCP reset."""
        self._loop.call_soon_threadsafe(self.sockets.reset)

    def deafen_sockets(self, *, pongs: bool = False) -> None:
        """Let sockets, open and new, deliver nothing; with `pongs` they still answer pings."""
        self._loop.call_soon_threadsafe(lambda: self.sockets.deafen(deaf=True, pongs=pongs))

    def hear_again(self) -> None:
        """End `deafen_sockets`."""
        self._loop.call_soon_threadsafe(lambda: self.sockets.deafen(deaf=False, pongs=True))

    def go_down(self) -> None:
        """Refuse every connection and break those that are open; what stands in Slack stays."""
        self._await(self._vanish(self._started()))

    def come_up(self) -> None:
        """Listen again, on the same port."""
        self._await(self._listen(self._started()))
