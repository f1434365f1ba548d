"""The web page of the stand-in: a small Slack in the browser, for people who try the bot.

Serves one static file and a JSON interface under `/ui/`. It answers only requests that a browser
makes for this very page, because a foreign site must not be able to press buttons here.
"""

import asyncio
import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from bot.standin import page_state
from bot.standin.interactions import Interactions
from bot.standin.reading import controls
from bot.standin.records import (
    Conversation,
    Payload,
    SlackError,
    StoredView,
    User,
)

PAGE = Path(__file__).with_name("page.html")
OWN_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
LONGEST_TEXT = 10_000
SUGGEST_SECONDS = 3.0
QUIET_SECONDS = 0.05
"""Changes that come closer together than this reach a browser as one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelRow:
    """A line of a panel and its buttons, as (words, what `press` is called with)."""

    text: str = ""
    buttons: tuple[tuple[str, str], ...] = ()
    grid: tuple[tuple[str, str], ...] = ()
    """Small cells in columns, as (words, what `press` is called with)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A panel that the sandbox adds beside the channels."""

    title: str
    rows: Callable[[], Sequence[PanelRow]]
    press: Callable[[str], None]


@dataclass(slots=True, kw_only=True)
class Page:
    """The page and its interface."""

    interactions: Interactions
    panels: tuple[Panel, ...] = ()
    _streams: set[asyncio.Event] = field(default_factory=set)
    _closing: bool = False

    def mount(self, app: web.Application) -> None:
        """Add the page to the server."""
        app.router.add_get("/", self._file)
        app.router.add_get("/ui/state", self._state)
        app.router.add_get("/ui/events", self._events)
        app.router.add_post("/ui/act", self._act)

    def close(self) -> None:
        """Let every browser's stream end."""
        self._closing = True
        for event in self._streams:
            event.set()

    async def _file(self, request: web.Request) -> web.StreamResponse:
        _only_from_here(request)
        html = PAGE.read_text(encoding="utf-8")
        policy = (
            f"default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; {_script(html)}"
        )
        return web.Response(
            text=html,
            content_type="text/html",
            headers={"Content-Security-Policy": policy, "Cache-Control": "no-store"},
        )

    async def _state(self, request: web.Request) -> web.StreamResponse:
        _only_from_here(request)
        world = self.interactions.world
        with world.condition:
            state = page_state.state(
                self.interactions, request.query.get("me", ""), request.query.get("channel", "")
            )
        state["panels"] = [
            {
                "title": panel.title,
                "rows": [_row(row) for row in panel.rows()],
            }
            for panel in self.panels
        ]
        return web.json_response(state)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events: the revision of the world each time that it has changed."""
        _only_from_here(request)
        headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        changed = asyncio.Event()
        loop = asyncio.get_running_loop()
        world = self.interactions.world

        def wake() -> None:
            loop.call_soon_threadsafe(changed.set)

        with world.condition:
            world.listeners.append(wake)
        self._streams.add(changed)
        try:
            while not self._closing:
                await response.write(f"data: {world.revision}\n\n".encode())
                await changed.wait()
                changed.clear()
                await asyncio.sleep(QUIET_SECONDS)
        except ConnectionError:
            # The browser was closed; there is nobody left to tell.
            pass
        finally:
            self._streams.discard(changed)
            with world.condition:
                world.listeners.remove(wake)
        return response

    async def _act(self, request: web.Request) -> web.StreamResponse:
        """One thing that the person at the browser does."""
        _only_from_here(request)
        if request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType(text="send JSON")
        wish: Payload = await request.json()
        try:
            return web.json_response({"ok": True, **await self._done(wish)})
        except (SlackError, KeyError, IndexError) as refusal:
            return web.json_response({"ok": False, "error": str(refusal)})

    async def _done(self, wish: Payload) -> Payload:
        if wish["do"] == "panel":
            panel = self.panels[int(wish["panel"])]
            await asyncio.to_thread(panel.press, str(wish["press"]))
            return {}
        if wish["do"] == "suggest":
            return await asyncio.to_thread(self._suggested, wish)
        user = self.interactions.world.users[wish["me"]]
        match wish["do"]:
            case "type":
                self._typed(user, wish)
            case "click":
                self._clicked(user, wish)
            case "click_view":
                view = self._view(user, wish)
                control = _control(view.as_payload()["blocks"], wish)
                self.interactions.click_view(user, view, control)
            case "submit":
                self.interactions.submit(user, self._view(user, wish), dict(wish["values"]))
            case "close":
                self.interactions.dismiss(user, self._view(user, wish))
            case "home":
                event = {"type": "app_home_opened", "user": user.id, "tab": "home"}
                self.interactions.event(user, event)
            case other:
                raise SlackError(f"the page cannot do {other}")
        return {}

    def _typed(self, user: User, wish: Payload) -> None:
        text = str(wish["text"])[:LONGEST_TEXT]
        channel = self._channel(user, str(wish["channel"]))
        if text.startswith("/") and wish.get("thread"):
            raise SlackError(f"{text.split()[0]} is not supported in threads. Sorry!")
        if text.startswith("/"):
            self.interactions.command(user, channel, text)
        else:
            self.interactions.say(user, channel, text, wish.get("thread"))

    def _channel(self, user: User, channel: str) -> Conversation:
        world = self.interactions.world
        with world.changing():
            return world.direct(user.id) if channel == "direct" else world.channels[channel]

    def _clicked(self, user: User, wish: Payload) -> None:
        channel = self._channel(user, str(wish["channel"]))
        message = self.interactions.world.messages[channel.id, wish["ts"]]
        control = _control(list(message.content.blocks), wish)
        self.interactions.click(user, message, control)

    def _view(self, user: User, wish: Payload) -> StoredView:
        view = self.interactions.world.views[wish["view"]]
        if view.user != user.id:
            raise SlackError("this view is on somebody else's screen")
        return view

    def _suggested(self, wish: Payload) -> Payload:
        user = self.interactions.world.users[wish["me"]]
        view = self._view(user, wish)
        control = _control(view.as_payload()["blocks"], wish) | {"value": str(wish["value"])}
        act = self.interactions.suggest(user, view, control)
        self.interactions.world.wait_for(lambda: act.settled, SUGGEST_SECONDS)
        if act.error is not None or act.ack is None:
            raise SlackError(act.error or "no answer")
        groups = act.ack.get("option_groups", [])
        options = [*act.ack.get("options", []), *(o for g in groups for o in g["options"])]
        return {"options": options}


def _row(row: PanelRow) -> Payload:
    return {"text": row.text, "buttons": list(row.buttons), "grid": list(row.grid)}


def _control(blocks: list[Payload], wish: Payload) -> Payload:
    """The control that was pressed, with what was chosen in it."""
    wanted = (wish["block_id"], wish["action_id"])
    for control in controls(blocks):
        if (control["block_id"], control["action_id"]) == wanted:
            return control | dict(wish.get("chosen", {}))
    raise SlackError("this control is no longer there")


def _only_from_here(request: web.Request) -> None:
    """Refuse what another site, or a name that only resolves to this host, sends here."""
    host = request.headers.get("Host", "")
    origin = request.headers.get("Origin")
    if host.rpartition(":")[0] not in OWN_HOSTS or origin not in (None, f"http://{host}"):
        raise web.HTTPForbidden(text="open this page under its own address, http://127.0.0.1:PORT")


def _script(html: str) -> str:
    """The policy that lets exactly the page's own script run."""
    code = html.partition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    return f"script-src 'sha256-{digest}'"
