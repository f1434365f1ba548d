"""One Socket Mode connection: Slack's own client, with an ear for its greeting and its farewell.

Made by `bot.slack.connection`. The SDK's client comes back by itself after a refresh, a close and a
reset; this adds what it does not tell (was there a greeting, when was anything heard) and keeps it
from coming back in a storm.
"""

import asyncio
import contextlib
import logging
from typing import Any

import aiohttp
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.web.async_client import AsyncWebClient

PING_SECONDS = 3
FAREWELL_SECONDS = 2.0
TOO_MANY_PAUSE = 30.0
"""Seconds before coming back when Slack says that the app has too many sockets."""

log = logging.getLogger("bot.slack.socket")
_sdk_log = logging.getLogger("bot.slack.socket.sdk")
_sdk_log.setLevel(logging.CRITICAL)  # the watch says in one line what the SDK says in tracebacks


class Socket(SocketModeClient):
    """The SDK's client; it also remembers what it heard."""

    def __init__(self, app_token: str, web: AsyncWebClient) -> None:
        """Connects at `connect`."""
        super().__init__(
            app_token=app_token, logger=_sdk_log, web_client=web, ping_interval=PING_SECONDS
        )
        self.proxy = web.proxy
        self.greeted = asyncio.Event()
        self.connecting_since = asyncio.get_running_loop().time()
        self.heard_at = self.connecting_since
        self.greetings = 0
        """How often it was greeted: the SDK comes back by itself."""
        self.sockets = 0
        """Sockets of the app, as the greeting said."""
        self.refused = ""
        """Why Slack gave no address for a socket, in its own word; empty once it does."""
        self.switched_off = False
        """Socket Mode was turned off in the app's settings."""

    async def connect(self) -> None:
        """Connect; the greeting is still to come."""
        self.greeted.clear()
        self.connecting_since = asyncio.get_running_loop().time()
        await super().connect()  # type: ignore[no-untyped-call]

    async def issue_new_wss_url(self) -> str:
        """An address for a socket, as the SDK asks for it."""
        try:
            address = await super().issue_new_wss_url()
        except SlackApiError as problem:
            self.refused = str(problem.response.get("error", ""))
            raise
        self.refused = ""
        return address

    async def hang_up(self) -> None:
        """End everything at once; the SDK's own `close` waits for a farewell that may never come."""
        self.closed = True
        self.auto_reconnect_enabled = False
        for task in (self.message_processor, self.current_session_monitor, self.message_receiver):
            if task is not None:
                task.cancel()
        session, self.current_session = self.current_session, None
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
            if session is not None:
                await asyncio.wait_for(session.close(), FAREWELL_SECONDS)
        await self.aiohttp_client_session.close()

    async def run_message_listeners(self, message: dict[str, Any], raw_message: str) -> None:
        """Note what was heard, then do what the SDK does."""
        self.heard_at = asyncio.get_running_loop().time()
        kind = message.get("type")
        if kind == "hello":
            self.sockets = int(message.get("num_connections") or 0)
            self.greetings += 1
            self.greeted.set()
        if kind == "disconnect":
            reason = str(message.get("reason", ""))
            log.info("Slack asks for a new socket: %s", reason)
            if reason == "link_disabled":
                self.switched_off = True
                return
            if reason == "too_many_websockets":
                await asyncio.sleep(TOO_MANY_PAUSE)
        await super().run_message_listeners(message, raw_message)


class Line(AsyncSocketModeHandler):
    """Bolt at the end of a socket."""

    client: Socket

    def __init__(self, app: AsyncApp, app_token: str, web: AsyncWebClient) -> None:
        """As the adapter's own, with our client."""
        self.app = app
        self.app_token = app_token
        self.client = Socket(app_token, web)
        # the adapter's own constructor has the same line
        self.client.socket_mode_request_listeners.append(self.handle)  # type: ignore[arg-type]
