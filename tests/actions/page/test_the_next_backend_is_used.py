"""HTTP receivers that fail in every way, and what the receipts then say."""

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from actions.hands import PageReceipt
from actions.page.alertmanager import AlertmanagerPager
from actions.page.backends import MaybeAccepted
from actions.page.chain import PagerChain
from actions.page.post import LARGEST_ANSWER, Endpoint, post
from actions.page.webhook import WebhookPager
from config.secrets import SecretRef
from tests.actions.page.receivers import (
    CANARY,
    CLOCK,
    LIMIT,
    PAGE,
    SECRETS,
    YES,
    Fake,
    StandingClock,
    closed_port,
    raw_receiver,
    receiver,
)

OPENSSL = shutil.which("openssl")
TOKEN = SecretRef("env:PAGE_TOKEN")
HASTE = timedelta(seconds=2)


def webhook(url: str, token: SecretRef | None = None) -> WebhookPager:
    endpoint = Endpoint(url=url, token=token)
    return WebhookPager(name="hook", endpoint=endpoint, secrets=SECRETS, clock=StandingClock())


def alertmanager(url: str) -> AlertmanagerPager:
    endpoint = Endpoint(url=url)
    return AlertmanagerPager(name="am", endpoint=endpoint, secrets=SECRETS, clock=StandingClock())


def sent(
    first: WebhookPager | AlertmanagerPager, deadline: timedelta = LIMIT
) -> tuple[PageReceipt, ...]:
    """Receipts of a chain whose second link always accepts."""
    return PagerChain([first, Fake("last", YES)], CLOCK).send(PAGE, deadline=deadline)


@contextmanager
def answering(status: int, body: bytes = b"", **headers: str) -> Iterator[str]:
    with receiver(status, body, headers) as seen:
        yield seen.url


@pytest.mark.parametrize("status", [200, 202, 204])
def test_a_2xx_is_accepted_and_nobody_else_is_asked(status: int) -> None:
    with receiver(status) as seen:
        (receipt,) = sent(webhook(f"{seen.url}/hook"))
    assert (receipt.backend, receipt.accepted) == ("hook", True)
    assert len(seen.posts) == 1
    assert seen.paths == ["/hook"]


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_a_refusal_goes_to_the_next_backend_after_one_try(status: int) -> None:
    with receiver(status, b"no <@U1> \x1b[31m") as seen:
        first, second = sent(webhook(seen.url))
    assert (first.accepted, first.unknown, second.accepted) == (False, False, True)
    assert f"HTTP {status}: no ‹@U1› \\x1b[31m" in first.detail
    assert len(seen.posts) == 1


@pytest.mark.parametrize("status", [502, 504])
def test_a_gateway_that_got_no_answer_leaves_it_unknown(status: int) -> None:
    with answering(status) as url:
        first, second = sent(webhook(url))
    assert (first.accepted, first.unknown, second.accepted) == (False, True, True)


def test_a_redirect_is_not_followed() -> None:
    with receiver(200) as other, answering(307, Location=other.url) as url:
        first, second = sent(webhook(url))
    assert (first.accepted, second.accepted) == (False, True)
    assert "not followed" in first.detail
    assert other.posts == []


def test_a_receiver_that_hangs_costs_only_its_share_of_the_deadline() -> None:
    with raw_receiver(b"", hangs=True) as url:
        first, second = sent(webhook(url), HASTE)
    assert (first.accepted, first.unknown, second.accepted) == (False, True, True)
    assert "no answer within" in first.detail


def test_an_answer_that_drips_for_ever_costs_only_its_share() -> None:
    half = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx"
    with raw_receiver(half, hangs=True) as url:
        first, second = sent(webhook(url), HASTE)
    assert (first.accepted, first.unknown, second.accepted) == (False, True, True)


@pytest.mark.parametrize("said", [b"", b"\x00\xff garbage\r\n\r\n", b"HTTP/9.9 9999 what\r\n\r\n"])
def test_an_answer_that_is_not_http_leaves_it_unknown(said: bytes) -> None:
    with raw_receiver(said, hangs=False) as url:
        first, second = sent(webhook(url))
    assert (first.accepted, first.unknown, second.accepted) == (False, True, True)


def test_a_huge_answer_is_not_read_to_its_end() -> None:
    with answering(500, b"x" * (64 * LARGEST_ANSWER)) as url:
        first, second = sent(webhook(url))
    assert (first.accepted, second.accepted) == (False, True)
    assert len(first.detail) < 300


def test_a_long_success_is_success_and_only_its_beginning_is_kept() -> None:
    with answering(200, b"x" * (64 * LARGEST_ANSWER)) as url:
        answer = post(Endpoint(url=url), {}, SECRETS, LIMIT)
    assert (answer.status, answer.whole, len(answer.body)) == (200, False, LARGEST_ANSWER)


def test_a_post_without_an_answer_may_have_been_delivered() -> None:
    with raw_receiver(b"", hangs=True) as url, pytest.raises(MaybeAccepted, match="no answer"):
        post(Endpoint(url=url), {}, SECRETS, HASTE)


def test_nobody_listening_is_known_not_to_have_sent() -> None:
    first, second = sent(webhook(closed_port()))
    assert (first.accepted, first.unknown, second.accepted) == (False, False, True)
    assert first.detail == "no connection: refused or unreachable"


@pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed")
def test_a_receiver_whose_certificate_nobody_signed_gets_no_page(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            *(str(OPENSSL), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
            *("-subj", "/CN=localhost", "-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with receiver(tls=context) as seen:
        first, second = sent(webhook(seen.url))
    assert (first.accepted, first.unknown, second.accepted) == (False, False, True)
    assert "not trusted" in first.detail
    assert seen.posts == []


def test_a_host_that_has_no_address_is_known_not_to_have_sent() -> None:
    first, _ = sent(webhook("http://nobody.invalid/"))
    assert (first.accepted, first.unknown) == (False, False)


def test_an_address_that_is_no_url_is_said() -> None:
    first, second = sent(webhook("ftp://x/"))
    assert (first.accepted, second.accepted) == (False, True)


def test_a_login_page_is_not_taken_for_an_alertmanager() -> None:
    with answering(200, b"<html>please log in</html>") as url:
        first, second = sent(alertmanager(url))
    assert (first.accepted, first.unknown, second.accepted) == (False, True, True)
    assert "something else" in first.detail


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "https_proxy"):
        monkeypatch.setenv(name, closed_port())
    with receiver() as seen:
        (receipt,) = sent(webhook(seen.url))
    assert receipt.accepted


def test_the_token_is_sent_and_appears_in_no_receipt() -> None:
    with receiver(401, f"bad token {CANARY}".encode()) as seen:
        first, _ = sent(webhook(seen.url, TOKEN))
    assert seen.headers[0]["Authorization"] == f"Bearer {CANARY}"
    assert CANARY not in str(first)
    assert "bad token [token]" in first.detail


def test_without_a_token_no_authorization_is_sent() -> None:
    with receiver() as seen:
        sent(webhook(seen.url))
    assert "Authorization" not in seen.headers[0]


@pytest.mark.parametrize(
    "reference, words", [("env:NOT_SET", "NOT_SET is not set"), ("env:BAD_TOKEN", "no HTTP header")]
)
def test_a_secret_that_cannot_be_used_is_named_and_the_next_is_asked(
    reference: str, words: str
) -> None:
    with receiver() as seen:
        first, second = sent(webhook(seen.url, SecretRef(reference)))
    assert words in first.detail
    assert "Evil" not in first.detail
    assert (first.accepted, second.accepted, seen.posts) == (False, True, [])


def test_a_webhook_gets_format_four_with_our_key() -> None:
    with receiver() as seen:
        sent(webhook(seen.url))
    (body,) = seen.posts
    assert (body["version"], body["status"], body["groupKey"]) == ("4", "firing", PAGE.key)
    (alert,) = body["alerts"]
    assert alert["labels"]["nodewarden_key"] == PAGE.key
    assert alert["annotations"]["job_name"] == "a‹!channel›&`id`"
    assert alert["startsAt"] == "2026-03-02T02:00:00+00:00"
