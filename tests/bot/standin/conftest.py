"""A small bot on the real slack_bolt, and a stand-in for it to talk to."""

import asyncio
import logging
import os
import re
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from bot.standin.server import SlackStandIn
from config.system_clock import SystemClock
from tests.patience import DEADLINE

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
OLD = {"type": "section", "text": {"type": "mrkdwn", "text": "waiting"}}
APPROVE = {
    "type": "actions",
    "elements": [
        {
            "type": "button",
            "action_id": "approve",
            "value": "apr-1.1",
            "text": {"type": "plain_text", "text": "Approve"},
        }
    ],
}
MODAL = {
    "type": "modal",
    "callback_id": "start",
    "title": {"type": "plain_text", "text": "Run"},
    "submit": {"type": "plain_text", "text": "Start"},
    "blocks": [
        {
            "type": "input",
            "block_id": "node",
            "label": {"type": "plain_text", "text": "Node"},
            "element": {
                "type": "external_select",
                "action_id": "node-name",
                "placeholder": {"type": "plain_text", "text": "node"},
                "min_query_length": 0,
            },
        }
    ],
}


@pytest.fixture(autouse=True)
def _no_foreign_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK reads these from the environment, loopback or not."""
    for name in list(os.environ):
        if name.startswith("SLACK_") or name.upper() in PROXIES:
            monkeypatch.delenv(name)


@pytest.fixture
def slack() -> Iterator[SlackStandIn]:
    """A workspace with two people and one channel."""
    with SlackStandIn(SystemClock()) as stand_in:
        stand_in.person("ann")
        stand_in.person("bob")
        stand_in.channel("#ops")
        yield stand_in


class Bot:
    """The real AsyncApp and Socket Mode client, in a loop of their own."""

    def __init__(self, slack: SlackStandIn) -> None:
        self.slack = slack
        self.seen: list[dict[str, Any]] = []
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.handlers: list[AsyncSocketModeHandler] = []

    def do(self, work: Callable[[], Coroutine[Any, Any, Any]], within: float = DEADLINE) -> Any:
        """Run a coroutine in the bot's loop and return what it returns."""
        return asyncio.run_coroutine_threadsafe(work(), self.loop).result(within)

    def call(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Call the Web API with the SDK's client; the answer, refused or not."""

        async def work() -> dict[str, Any]:
            client = AsyncWebClient(token=self.slack.bot_token, base_url=self.slack.base_url)
            response = await client.api_call(method, json=arguments)
            assert isinstance(response.data, dict)
            return response.data

        data: dict[str, Any] = self.do(work)
        return data

    def start(self, sockets: int = 1) -> None:
        """Connect."""
        for _ in range(sockets):
            self.do(self._connect)
        self.slack.wait_for_bot(sockets)

    async def _connect(self) -> None:
        client = AsyncWebClient(token=self.slack.bot_token, base_url=self.slack.base_url)
        quiet = logging.getLogger("bolt-under-test")
        quiet.setLevel(logging.CRITICAL)
        app = AsyncApp(client=client, logger=quiet)
        self._listeners(app)
        handler = AsyncSocketModeHandler(app, self.slack.app_token, ping_interval=3)
        self.handlers.append(handler)
        # The SDK leaves these two without annotations.
        await handler.connect_async()  # type: ignore[no-untyped-call]

    def _listeners(self, app: AsyncApp) -> None:
        @app.command("/ops")
        async def command(ack: Any, body: Any, client: Any, respond: Any) -> None:
            self.seen.append(body)
            verb = body["text"].partition(" ")[0]
            if verb == "mute":
                return
            await ack(text="understood") if verb == "tell" else await ack()
            if verb == "run":
                await client.chat_postMessage(
                    channel=body["channel_id"], text="Run 1 waiting", blocks=[OLD, APPROVE]
                )
            elif verb == "form":
                await client.views_open(trigger_id=body["trigger_id"], view=MODAL)
            elif verb == "many":
                for number in range(5):
                    await respond(text=f"answer {number}")

        @app.action(re.compile(".*"))
        async def action(ack: Any, body: Any, client: Any) -> None:
            self.seen.append(body)
            await ack()
            if "message" in body and body["message"]["text"].endswith("waiting"):
                await client.chat_update(
                    channel=body["channel"]["id"],
                    ts=body["container"]["message_ts"],
                    text=f"Run 1 approved by <@{body['user']['id']}>",
                    blocks=[OLD | {"text": {"type": "mrkdwn", "text": "approved"}}],
                )

        @app.options("node-name")
        async def options(ack: Any, body: Any) -> None:
            names = [n for n in ("gpu-01", "gpu-02", "cpu-01") if n.startswith(body["value"])]
            await ack(
                options=[{"text": {"type": "plain_text", "text": n}, "value": n} for n in names]
            )

        @app.view("start")
        async def start(ack: Any, body: Any) -> None:
            values = body["view"]["state"]["values"]
            chosen = values["node"]["node-name"]["selected_option"]["value"]
            if chosen == "cpu-01":
                await ack(response_action="errors", errors={"node": "has no GPU"})
            elif chosen == "gpu-02":
                await ack(response_action="errors", errors={"nowhere": "x"})
            else:
                await ack()

        @app.event("app_mention")
        async def mention(body: Any, say: Any) -> None:
            self.seen.append(body)
            event = body["event"]
            await say(text="you called", thread_ts=event.get("thread_ts") or event["ts"])

        @app.event("app_home_opened")
        async def home(event: Any, client: Any) -> None:
            view = {"type": "home", "blocks": [OLD]}
            await client.views_publish(user_id=event["user"], view=view)

    def stop(self) -> None:
        """Disconnect and end the loop."""
        for handler in self.handlers:
            self.do(handler.close_async)

        async def drain() -> None:
            rest = asyncio.all_tasks() - {asyncio.current_task()}
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)

        self.do(drain)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(DEADLINE)
        self.loop.close()


@pytest.fixture
def bot(slack: SlackStandIn) -> Iterator[Bot]:
    """A bot that is not connected yet."""
    made = Bot(slack)
    yield made
    made.stop()


@pytest.fixture
def online(bot: Bot) -> Bot:
    """A connected bot."""
    bot.start()
    return bot
