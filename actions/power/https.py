"""One HTTPS request to a BMC: certificate checked, bounded in time and size, no redirect, no retry.

Called by `actions.power.redfish` only. BMCs are old, slow and reachable by others: nothing that one says
is followed to another host, and no error repeats the password.
"""

import json
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path

import urllib3

from actions.contract import Refusal, Rejected, Unreadable, WriteUnknown
from config.json_values import Json, JsonMap

LARGEST_ANSWER = 1 << 20
"""A list of 1,000 log entries, written out, is some 600 KiB."""
LONGEST_SHOWN = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who asks, resolved for this one request."""

    user: str
    password: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """How BMCs are spoken with."""

    ca_file: Path | None
    limit: timedelta


class _Broken(Exception):
    """No answer that can be used; `sent`: whether the request may have been read."""

    def __init__(self, why: str, *, sent: bool) -> None:
        """Keep whether anything can have happened."""
        super().__init__(why)
        self.sent = sent


def get(line: Line, host: str, path: str, account: Account) -> JsonMap:
    """The object at that path. Raises Unreadable, and Refusal where the account is not let in."""
    try:
        status, body = _ask(line, host, path, account, None)
    except _Broken as error:
        raise Unreadable(f"{host}: {error}") from None
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        raise Refusal(f"{host} does not let the bot's account read its power (HTTP {status})")
    if status != HTTPStatus.OK:
        raise Unreadable(f"{host}{path}: HTTP {status}{_not_followed(status)}")
    try:
        found = json.loads(body)
    except ValueError:
        raise Unreadable(f"{host}{path}: the answer is no JSON") from None
    if not isinstance(found, dict):
        raise Unreadable(f"{host}{path}: the answer is no object")
    return found


def post(line: Line, host: str, path: str, account: Account, value: Mapping[str, Json]) -> None:
    """Send it once. Raises Unreadable (nothing was sent), Rejected, WriteUnknown."""
    try:
        status, body = _ask(line, host, path, account, json.dumps(value).encode())
    except _Broken as error:
        if error.sent:
            raise WriteUnknown(f"{host}: {error}") from None
        raise Unreadable(f"{host}: {error}; nothing was sent") from None
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return
    said = f"{host}: HTTP {status}{_not_followed(status)}{_words(body, account)}"
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise WriteUnknown(said)
    raise Rejected(said)


def _ask(
    line: Line, host: str, path: str, account: Account, body: bytes | None
) -> tuple[int, bytes]:
    """Status and body. Raises _Broken."""
    seconds = line.limit / timedelta(seconds=1)
    deadline = time.monotonic() + seconds
    with urllib3.PoolManager(
        num_pools=1,
        retries=False,
        timeout=urllib3.Timeout(total=seconds),
        ssl_context=_context(line),
    ) as pool:
        try:
            response = pool.request(
                "GET" if body is None else "POST",
                f"https://{host}{path}",
                body=body,
                headers=_headers(account, body),
                redirect=False,
                preload_content=False,
                decode_content=False,
            )
            return response.status, _read(response, deadline)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise _told_apart(error) from None
        finally:
            pool.clear()


def _context(line: Line) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(
            cafile=None if line.ca_file is None else str(line.ca_file)
        )
    except (OSError, ssl.SSLError):
        why = f"no certificates can be read from {line.ca_file}: put the BMCs' CA there as PEM"
        raise _Broken(why, sent=False) from None


def _headers(account: Account, body: bytes | None) -> dict[str, str]:
    try:
        basic = urllib3.make_headers(basic_auth=f"{account.user}:{account.password}")
    except UnicodeEncodeError:
        raise _Broken("the password holds characters that HTTP cannot carry", sent=False) from None
    headers = {"Accept": "application/json", "OData-Version": "4.0", "User-Agent": "nodewarden"}
    if body is not None:
        headers["Content-Type"] = "application/json"
    return {**headers, **basic}


def _read(response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
    """The whole body. Raises _Broken for one that is too large or comes too slowly."""
    try:
        received = bytearray()
        while chunk := response.read(LARGEST_ANSWER + 1 - len(received)):
            received += chunk
            if len(received) > LARGEST_ANSWER:
                raise _Broken(f"the answer is larger than {LARGEST_ANSWER} bytes", sent=True)
            if time.monotonic() > deadline:
                raise _Broken("the answer did not end within the time limit", sent=True)
        return bytes(received)
    finally:
        response.close()


def _not_followed(status: int) -> str:
    redirect = HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST
    return ": a redirect, which is not followed" if redirect else ""


def _words(body: bytes, account: Account) -> str:
    """The beginning of what came with a refusal, without the password should it be repeated."""
    text = body[: 8 * LONGEST_SHOWN].decode("utf-8", "backslashreplace")
    clean = "".join(c if c.isprintable() else " " for c in text.replace(account.password, "[…]"))
    shown = " ".join(clean.split())[:LONGEST_SHOWN]
    return f": {shown}" if shown else ""


def _told_apart(error: Exception) -> _Broken:
    """Whether anything can have been done; told without the text of the library."""
    match error:
        case urllib3.exceptions.NameResolutionError():
            return _Broken("its host name cannot be resolved", sent=False)
        case urllib3.exceptions.NewConnectionError():
            return _Broken("no connection: refused or unreachable", sent=False)
        case urllib3.exceptions.ConnectTimeoutError():
            return _Broken("no connection within the time limit", sent=False)
        case urllib3.exceptions.SSLError(args=(ssl.SSLCertVerificationError(), *_)):
            return _Broken("TLS failed: its certificate is not trusted or does not fit", sent=False)
        case urllib3.exceptions.LocationValueError():
            return _Broken("its address cannot be called", sent=False)
        case urllib3.exceptions.TimeoutError():
            return _Broken("no answer within the time limit", sent=True)
        case _:
            name = type(error).__name__
            return _Broken(f"the connection broke or the answer is not HTTP ({name})", sent=True)
