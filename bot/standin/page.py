"""The web page of the stand-in: a small Slack in the browser, for people who try the bot.

Serves one static file and a JSON interface under `/ui/`. It answers only requests that a browser
makes for this very page, because a foreign site must not be able to press buttons here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from bot.standin.interactions import Interactions
from bot.standin.world import Payload

PAGE = Path(__file__).with_name("page.html")


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A panel that the sandbox adds: a title, what it shows, and what its buttons do."""

    title: str
    show: Callable[[], Payload]
    press: Callable[[str], None]


@dataclass(slots=True, kw_only=True)
class Page:
    """The page and its interface."""

    interactions: Interactions
    panels: tuple[Panel, ...] = ()

    def mount(self, app: web.Application) -> None:
        """Add the page to the server."""
        app.router.add_get("/", self._page)

    async def _page(self, request: web.Request) -> web.StreamResponse:
        return web.FileResponse(PAGE)

    def close(self) -> None:
        """Nothing yet."""
