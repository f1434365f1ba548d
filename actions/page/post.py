"""One HTTP POST of JSON: bounded in time and size, no redirect, no proxy, no retry.

Called by the back ends that speak HTTP; the only module of this area that opens connections.
urllib3 itself is used because it takes neither proxies nor credentials from the environment, and
lets the size of an answer be limited before it is read.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus

import urllib3

from actions.page.backends import MaybeAccepted, NotAccepted, Secrets
from actions.page.messages import plain
from config.json_values import Json
from config.secret_store import SecretError
from config.secrets import SecretRef

LARGEST_ANSWER = 64 * 1024
LONGEST_SHOWN = 160

_GATEWAY = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT})
"""A proxy that got no answer says nothing about what happened behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where to post, and with which bearer token."""

    url: str
    token: SecretRef | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A 2xx and the beginning of what came with it."""

    status: int
    body: bytes
    whole: bool
    """False when the body is longer than LARGEST_ANSWER; the rest was not read."""


def post(
    endpoint: Endpoint,
    body: Mapping[str, Json] | Sequence[Mapping[str, Json]],
    secrets: Secrets,
    limit: timedelta,
) -> Answer:
    """Post it once. Raises NotAccepted, MaybeAccepted; no message holds the token."""
    token = _token(endpoint, secrets)
    headers = {"Content-Type": "application/json", "User-Agent": "nodewarden"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    seconds = limit / timedelta(seconds=1)
    with urllib3.PoolManager(
        num_pools=1, retries=False, timeout=urllib3.Timeout(total=seconds)
    ) as pool:
        try:
            response = pool.request(
                "POST",
                endpoint.url,
                body=json.dumps(body).encode(),
                headers=headers,
                redirect=False,
                preload_content=False,
                decode_content=False,
            )
            received = _read(response)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise _told_apart(error) from None
        finally:
            pool.clear()
    _judge(response.status, received, token)
    return Answer(
        status=response.status,
        body=received[:LARGEST_ANSWER],
        whole=len(received) <= LARGEST_ANSWER,
    )


def _token(endpoint: Endpoint, secrets: Secrets) -> str:
    """The token's value, checked so that no library repeats it in an error."""
    if endpoint.token is None:
        return ""
    try:
        token = secrets.resolve(endpoint.token)
    except SecretError as error:
        raise NotAccepted(str(error)) from None
    if not (token.isascii() and token.isprintable()):
        raise NotAccepted(f"{endpoint.token} holds characters that no HTTP header can carry")
    return token


def _read(response: urllib3.BaseHTTPResponse) -> bytes:
    """At most one byte more than is allowed; the connection is not used again."""
    try:
        received = bytearray()
        while len(received) <= LARGEST_ANSWER:
            chunk = response.read(LARGEST_ANSWER + 1 - len(received))
            if not chunk:
                break
            received += chunk
        return bytes(received)
    finally:
        response.close()


def _judge(status: int, received: bytes, token: str) -> None:
    """Raise unless the status says that the page was taken over."""
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return
    said = plain(_without(received, token), LONGEST_SHOWN)
    told = f"HTTP {status}" + (f": {said}" if said else "")
    if status < HTTPStatus.BAD_REQUEST:
        raise NotAccepted(f"{told}: a redirect, which is not followed; configure the final address")
    if status < HTTPStatus.INTERNAL_SERVER_ERROR and status != HTTPStatus.TOO_MANY_REQUESTS:
        raise NotAccepted(f"{told}: sending the same again will not help")
    if status in _GATEWAY:
        raise MaybeAccepted(told)
    raise NotAccepted(told)


def _without(received: bytes, token: str) -> str:
    """The beginning of an answer, without our token should it be repeated there."""
    text = received[: 4 * LONGEST_SHOWN].decode("utf-8", "backslashreplace")
    return text.replace(token, "[token]") if token else text


def _told_apart(error: Exception) -> NotAccepted | MaybeAccepted:
    """Whether anything can have been delivered; told without the text of the library."""
    match error:
        case urllib3.exceptions.NameResolutionError():
            return NotAccepted("its host name cannot be resolved")
        case urllib3.exceptions.NewConnectionError():
            return NotAccepted("no connection: refused or unreachable")
        case urllib3.exceptions.ConnectTimeoutError():
            return NotAccepted("no connection within the time limit")
        case urllib3.exceptions.SSLError():
            return NotAccepted("TLS failed: its certificate is not trusted or does not fit")
        case urllib3.exceptions.LocationValueError():
            return NotAccepted("its address is not a URL that can be called")
        case urllib3.exceptions.TimeoutError():
            return MaybeAccepted("no answer within the time limit")
        case _:
            return MaybeAccepted(f"the connection broke or the answer is not HTTP ({_kind(error)})")


def _kind(error: Exception) -> str:
    """The name of an error's class, for the log of the receiver's side."""
    return type(error).__name__
