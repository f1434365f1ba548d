"""Slack's Web API, one call at a time: an answer, or an exception that says whether it was taken.

Everything that goes to Slack over HTTP goes through here. It never repeats a call: whether a
repetition is safe is known only to the caller (a post that was taken and not answered would appear
twice).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.slack.courses import Course, course

LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})
PATIENCE = 10
"""Seconds for one call."""
DEFAULT_WAIT = 10.0
"""Seconds to wait after a 429 that does not say how long."""

Answer = Mapping[str, Any]
Arguments = Mapping[str, Any]


@dataclass(eq=False)
class Limited(Exception):
    """429: not taken; come back after so many seconds."""

    seconds: float


@dataclass(eq=False)
class Said(Exception):
    """Slack said no, in its own words."""

    error: str
    detail: str = ""

    @property
    def course(self) -> Course:
        """What to do about it."""
        return course(self.error)


@dataclass(eq=False)
class Unsent(Exception):
    """No connection: the call was not taken."""

    why: str


@dataclass(eq=False)
class Unanswered(Exception):
    """The connection broke, or took too long: the call may have been taken."""

    why: str


class Web:
    """The Web API with the bot's token, which is read at each call."""

    def __init__(self, api_url: str, token: Callable[[], str]) -> None:
        """Opens nothing; call within the event loop."""
        self._token = token
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PATIENCE))
        self.client = AsyncWebClient(
            base_url=api_url, timeout=PATIENCE, retry_handlers=[], session=self._session
        )
        if urlsplit(api_url).hostname in LOCAL:
            self.client.proxy = None  # a proxy of the environment cannot reach this machine
        self.scopes: frozenset[str] = frozenset()
        """Granted scopes, as the last answer named them."""

    async def call(self, method: str, arguments: Arguments) -> Answer:
        """One call. Raises Limited, Said, Unsent, Unanswered."""
        try:
            response = await self.client.api_call(
                method, json=dict(arguments), headers=self._authorization()
            )
        except SlackApiError as problem:
            raise _refusal(problem) from problem
        except aiohttp.ClientConnectorError as problem:
            raise Unsent(f"Slack cannot be reached: {problem}") from problem
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            raise Unanswered(f"{method}: {type(problem).__name__}") from problem
        self._note_scopes(response.headers)
        data = response.data
        return data if isinstance(data, dict) else {}

    async def get(self, method: str, arguments: Arguments) -> Answer:
        """A call that only reads, as a form: the older methods take no JSON."""
        try:
            response = await self.client.api_call(
                method, data=dict(arguments), headers=self._authorization()
            )
        except SlackApiError as problem:
            raise _refusal(problem) from problem
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            raise Unsent(f"{method}: {type(problem).__name__}") from problem
        self._note_scopes(response.headers)
        data = response.data
        return data if isinstance(data, dict) else {}

    async def respond(self, url: str, body: Arguments) -> bool:
        """Answer through a response url; False when it has run out or cannot be reached."""
        try:
            async with self._session.post(url, json=dict(body), proxy=self.client.proxy) as answer:
                return answer.status == 200
        except (aiohttp.ClientError, TimeoutError, OSError):
            return False

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    def _authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token()}"}

    def _note_scopes(self, headers: Mapping[str, str]) -> None:
        told = headers.get("x-oauth-scopes", "")
        if told:
            self.scopes = frozenset(scope.strip() for scope in told.split(","))


def _refusal(problem: SlackApiError) -> Exception:
    """Our exception for one of the SDK's."""
    response = problem.response
    status = int(getattr(response, "status_code", getattr(response, "status", 200)))
    headers = response.headers
    if status == 429:
        wait = headers.get("Retry-After", "")
        return Limited(float(wait) if wait.isdecimal() else DEFAULT_WAIT)
    if status >= 500:
        return Unanswered(f"Slack answered {status}")
    data = getattr(response, "data", None)
    if not isinstance(data, dict):
        return Unanswered(f"Slack answered {status} without a body of its own")
    messages = data.get("response_metadata", {}).get("messages", [])
    return Said(str(data.get("error", "unknown")), "; ".join(map(str, messages))[:500])
