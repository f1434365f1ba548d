"""The HTTP door of the Web API: token, scope, rate and faults first, then the method.

Mounted by the server. One handler serves every method; what a method does stands in the
`*_methods` modules.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

from bot.standin.arguments import Arguments
from bot.standin.chat_methods import ChatMethods
from bot.standin.directory_methods import DirectoryMethods
from bot.standin.faults import Fault, FaultKind, Faults
from bot.standin.file_methods import FileMethods
from bot.standin.rates import PER_CHANNEL, TIERS, Buckets
from bot.standin.records import (
    Payload,
    SlackError,
)
from bot.standin.sockets import abort
from bot.standin.tickets import Tickets
from bot.standin.view_methods import ViewMethods
from bot.standin.world import World

BOT_TOKEN = "xoxb-standin-bot"  # noqa: S105 opens nothing but this stand-in
APP_TOKEN = "xapp-standin-app"  # noqa: S105 as above
KEPT_CALLS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One method: its tier, the scope that it needs, and what it does."""

    tier: int
    scope: str
    run: Callable[[Arguments], Payload]
    app_token: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call that reached the Web API, for tests and benches to count."""

    method: str
    arguments: Payload
    at: float
    """Monotonic seconds of the world's clock."""
    error: str | None
    status: int


@dataclass(slots=True, kw_only=True)
class WebApi:
    """The Web API of one workspace; `rates` says whether Slack's rate limits hold."""

    world: World
    tickets: Tickets
    faults: Faults
    chat: ChatMethods
    views: ViewMethods
    base_url: Callable[[], str]
    rates: bool = True
    tokens_revoked: bool = False
    scopes: set[str] = field(default_factory=set)
    calls: deque[Call] = field(default_factory=lambda: deque(maxlen=KEPT_CALLS))
    methods: dict[str, Method] = field(init=False)
    _files: FileMethods = field(init=False)
    _buckets: Buckets = field(default_factory=Buckets)

    def __post_init__(self) -> None:
        """Make the table of methods; every scope is granted until a test takes one away."""
        self._files = FileMethods(chat=self.chat)
        self.methods = self._table()
        self.scopes = {m.scope for m in self.methods.values() if m.scope and not m.app_token}
        self.scopes |= {"commands", "app_mentions:read", "im:history"}
        self.scopes |= {"groups:read", "groups:history"}

    def _table(self) -> dict[str, Method]:
        chat, views = self.chat, self.views
        people = DirectoryMethods(world=self.world)
        rows: tuple[tuple[str, int, str, Callable[[Arguments], Payload]], ...] = (
            ("auth.test", 4, "", people.auth_test),
            ("team.info", 3, "team:read", people.team_info),
            ("bots.info", 3, "users:read", people.bots_info),
            ("chat.postMessage", 0, "chat:write", chat.post_message),
            ("chat.postEphemeral", 4, "chat:write", chat.post_ephemeral),
            ("chat.update", 3, "chat:write", chat.update),
            ("chat.delete", 3, "chat:write", chat.delete),
            ("chat.getPermalink", 4, "", chat.permalink),
            ("reactions.add", 3, "reactions:write", chat.add_reaction),
            ("reactions.remove", 2, "reactions:write", chat.remove_reaction),
            ("views.open", 4, "", views.open),
            ("views.push", 4, "", views.push),
            ("views.update", 4, "", views.update),
            ("views.publish", 4, "", views.publish),
            ("users.info", 4, "users:read", people.user_info),
            ("users.list", 2, "users:read", people.user_list),
            ("users.lookupByEmail", 3, "users:read.email", people.user_by_email),
            ("usergroups.list", 2, "usergroups:read", people.group_list),
            ("usergroups.users.list", 2, "usergroups:read", people.group_members),
            ("conversations.info", 3, "channels:read", people.channel_info),
            ("conversations.list", 2, "channels:read", people.channel_list),
            ("conversations.members", 4, "channels:read", people.channel_members),
            ("conversations.join", 3, "channels:join", people.join),
            ("conversations.open", 3, "im:write", people.open_direct),
            ("conversations.replies", 3, "channels:history", people.replies),
            ("conversations.history", 3, "channels:history", people.history),
            ("files.getUploadURLExternal", 4, "files:write", self._upload_url),
            ("files.completeUploadExternal", 4, "files:write", self._files.complete),
        )
        table = {name: Method(tier=t, scope=s, run=run) for name, t, s, run in rows}
        table["apps.connections.open"] = Method(
            tier=1, scope="connections:write", run=self._open_connection, app_token=True
        )
        return table

    def _upload_url(self, args: Arguments) -> Payload:
        return self._files.upload_url(args, f"{self.base_url()}/upload/")

    def _open_connection(self, _args: Arguments) -> Payload:
        host = self.base_url().removeprefix("http://")
        return {"url": f"ws://{host}/link/?ticket={self.tickets.new_link()}"}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one call."""
        name = request.match_info["method"]
        await asyncio.sleep(self.faults.delay_of(name))
        try:
            args = Arguments(await _arguments(request))
        except ValueError:
            return web.json_response({"ok": False, "error": "invalid_json"})
        fault = self.faults.next_for(name)
        if fault is not None and fault.kind is not FaultKind.CUT:
            return self._faulty(name, args, fault)
        answer, status, headers = self._answer(name, args, _token(request))
        if fault is not None and isinstance(request.transport, asyncio.Transport):
            abort(request.transport)
        headers["x-oauth-scopes"] = ",".join(sorted(self.scopes))
        return web.json_response(answer, status=status, headers=headers)

    def _faulty(self, name: str, args: Arguments, fault: Fault) -> web.Response:
        if fault.kind is FaultKind.HTTP:
            self._record(name, args, None, fault.number)
            return web.Response(status=fault.number, text="upstream failure")
        if fault.kind is FaultKind.RATE_LIMIT:
            self._record(name, args, "ratelimited", 429)
            headers = {"Retry-After": str(fault.number)}
            return web.json_response(
                {"ok": False, "error": "ratelimited"}, status=429, headers=headers
            )
        self._record(name, args, fault.error, 200)
        return web.json_response({"ok": False, "error": fault.error})

    def _answer(
        self, name: str, args: Arguments, token: str | None
    ) -> tuple[Payload, int, dict[str, str]]:
        with self.world.condition:
            try:
                method = self._admitted(name, token)
                wait = self._wait(name, method, args)
                if wait is not None:
                    self._record(name, args, "ratelimited", 429)
                    return {"ok": False, "error": "ratelimited"}, 429, {"Retry-After": str(wait)}
                with self.world.changing():
                    answer = {"ok": True, **method.run(args)}
                    self._record(name, args, None, 200)
                return answer, 200, {}
            except SlackError as refusal:
                self._record(name, args, refusal.error, 200)
                return {"ok": False, "error": refusal.error, **refusal.extra}, 200, {}

    def _admitted(self, name: str, token: str | None) -> Method:
        if token is None:
            raise SlackError("not_authed")
        if token not in {BOT_TOKEN, APP_TOKEN}:
            raise SlackError("invalid_auth")
        if self.tokens_revoked:
            raise SlackError("token_revoked")
        method = self.methods.get(name)
        if method is None:
            raise SlackError("unknown_method", req_method=name)
        if method.app_token != (token == APP_TOKEN):
            raise SlackError("not_allowed_token_type")
        if method.scope and not method.app_token and method.scope not in self.scopes:
            provided = ",".join(sorted(self.scopes))
            raise SlackError("missing_scope", needed=method.scope, provided=provided)
        return method

    def _wait(self, name: str, method: Method, args: Arguments) -> int | None:
        if not self.rates:
            return None
        now = self.world.seconds()
        if method.tier == 0:
            return self._buckets.take(f"{name} {args.values.get('channel')}", PER_CHANNEL, now)
        return self._buckets.take(name, TIERS[method.tier], now)

    def _record(self, name: str, args: Arguments, error: str | None, status: int) -> None:
        with self.world.changing():
            self.calls.append(
                Call(
                    method=name,
                    arguments=args.values,
                    at=self.world.seconds(),
                    error=error,
                    status=status,
                )
            )

    async def respond(self, request: web.Request) -> web.StreamResponse:
        """A post to a response url: 404 with Slack's error once it has run out."""
        await asyncio.sleep(self.faults.delay_of("response_url"))
        try:
            body = dict(await request.json())
        except ValueError:
            return web.json_response({"ok": False, "error": "invalid_payload"}, status=400)
        fault = self.faults.next_for("response_url")
        if fault is not None and fault.kind is not FaultKind.CUT:
            return self._faulty("response_url", Arguments(body), fault)
        try:
            with self.world.changing():
                place = self.tickets.use_response_url(request.match_info["token"])
                self.chat.answer(place, body)
        except SlackError as refusal:
            status = 404 if refusal.error in {"expired_url", "used_url"} else 400
            return web.json_response(
                {"ok": False, "error": refusal.error, **refusal.extra}, status=status
            )
        return web.Response(text="ok")

    async def upload(self, request: web.Request) -> web.StreamResponse:
        """The bytes of a file, as a plain body or as the one part of a form."""
        if request.content_type.startswith("multipart/"):
            form = await request.post()
            part = next((v for v in form.values() if isinstance(v, web.FileField)), None)
            content = b"" if part is None else part.file.read()
        else:
            content = await request.read()
        with self.world.changing():
            taken = self._files.receive(request.match_info["file"], content)
        if not taken:
            return web.Response(status=400, text="unknown file or other length than announced")
        return web.Response(text=f"OK - {len(content)}")


def _token(request: web.Request) -> str | None:
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    return token if kind == "Bearer" and token else None


async def _arguments(request: web.Request) -> Payload:
    values: Payload = dict(request.query)
    if request.content_type == "application/json":
        values |= dict(await request.json()) if request.can_read_body else {}
    else:
        values |= dict(await request.post())
    return values
