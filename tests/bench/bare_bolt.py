"""The comparison: Bolt with one command that answers at once, and nothing else.

`python -m tests.bench.bare_bolt URL BOT_TOKEN APP_TOKEN`, started by `tests.bench.slack_speed`.
"""

import asyncio
import sys
from typing import Any

from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient


async def main(url: str, bot_token: str, app_token: str) -> None:
    """Answer until the process is ended."""
    app = AsyncApp(client=AsyncWebClient(token=bot_token, base_url=url))

    async def echo(ack: Any, command: dict[str, Any]) -> None:
        await ack(text=str(command["text"]))

    app.command("/ops")(echo)
    client = AsyncWebClient(token=app_token, base_url=url)
    handler = AsyncSocketModeHandler(app, app_token, web_client=client)
    await handler.start_async()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
