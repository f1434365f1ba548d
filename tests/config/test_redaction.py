import base64
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.redaction import MASK, Redactor

SECRET = 'kJ9/qX+"canary\\7 ü&v'
PLAIN = "s3cr3t-of-the-site"
REDACTOR = Redactor([SECRET, PLAIN])

around = st.text(alphabet='ab =:"\\/\n{}é', max_size=12)


def forms(secret: str) -> Iterator[str]:
    """Every form in which a program may repeat it."""
    once = json.dumps(secret)[1:-1]
    yield from (secret, once, json.dumps(once)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    yield from (quote(secret), quote(secret, safe=""), quote_plus(secret))
    yield re.sub("%..", lambda found: found[0].lower(), quote(secret, safe=""))


@pytest.mark.parametrize("secret", [SECRET, PLAIN])
@given(before=around, after=around)
def test_a_known_secret_is_masked_in_every_form(secret: str, before: str, after: str) -> None:
    for form in forms(secret):
        masked = REDACTOR.text(f"{before}{form}{after}")
        assert MASK in masked
        assert secret not in masked
        assert form not in masked


@pytest.mark.parametrize("secret", [SECRET, PLAIN])
@pytest.mark.parametrize("encoder", [base64.b64encode, base64.urlsafe_b64encode])
@given(before=st.binary(max_size=7), after=st.binary(max_size=7))
def test_a_known_secret_is_masked_in_base64_wherever_it_begins(
    secret: str, encoder: object, before: bytes, after: bytes
) -> None:
    assert callable(encoder)
    text = encoder(before + secret.encode() + after).decode()
    masked = REDACTOR.text(f"Authorization-like: {text}")
    kept = masked.split(": ", 1)[1]
    assert MASK in kept
    assert len(kept.replace(MASK, "")) * 6 <= (len(before) + len(after)) * 8 + 24


TOKENS = [
    "xoxb-" + "1234567890-abcdefGHIJ",
    "xapp-" + "1-A0123456789-abcdef",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ghp_" + "a1" * 18,
    "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\nAAAA\n-----END OPENSSH PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nnever ended",
]


@pytest.mark.parametrize("token", TOKENS)
def test_a_token_of_a_known_shape_is_masked(token: str) -> None:
    escaped = Redactor().text(json.dumps(f"log\n{token}"))
    assert token.split("\n")[-1] not in escaped
    masked = Redactor().text(f"before {token}\nafter")
    assert token.split("\n")[-1] not in masked
    assert token not in masked
    assert masked.startswith(f"before {MASK}")


@pytest.mark.parametrize(
    "text, hidden",
    [
        ("PASSWORD=hunter2hunter2 next", "hunter2hunter2"),
        ("export DB_PASSWORD='hunter2'", "hunter2"),
        ('{"api_key": "abcdef"}', "abcdef"),
        ('{\\"token\\":\\"abcdef\\"}', "abcdef"),
        ("password: hunter2", "hunter2"),
        ("Authorization: Bearer abc.def-ghi", "abc.def-ghi"),
        ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("curl -H 'bearer abcdefgh'", "abcdefgh"),
        ("mysql://bot:hunter2@db/slurm", "hunter2"),
        ("https://hooks.slack.com/services/T00/B00/abcdefgh", "abcdefgh"),
    ],
)
def test_a_value_that_is_named_as_a_secret_is_masked(text: str, hidden: str) -> None:
    masked = Redactor().text(text)
    assert hidden not in masked
    assert MASK in masked


@pytest.mark.parametrize(
    "text",
    [
        "drain gpu-[001-004] because Xid 79",
        "token: env:SLACK_BOT_TOKEN",
        "password_file = file:/etc/nodewarden/pager",
        "the token expired, ask again",
        "slurm_load_node: Protocol authentication error",
        "https://example.org/runbooks/node-dropped",
        "a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90",
    ],
)
def test_ordinary_text_and_references_stay(text: str) -> None:
    assert REDACTOR.text(text) == text


def test_values_are_masked_in_keys_and_at_every_depth() -> None:
    masked = REDACTOR.values(
        {
            "list": [{"deep": f"x{PLAIN}y"}, 7, None, True],
            PLAIN: "value",
            "db_password": "anything",
            "token": "env:NAME",
            "nested": {"private_key": "k", "authorization": "Basic x", "count": 3},
        }
    )
    assert masked == {
        "list": [{"deep": f"x{MASK}y"}, 7, None, True],
        MASK: "value",
        "db_password": MASK,
        "token": "env:NAME",
        "nested": {"private_key": MASK, "authorization": MASK, "count": 3},
    }


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=8), json_values, max_size=4))
def test_masking_twice_changes_nothing_more_and_clean_means_unchanged(values: dict) -> None:  # type: ignore[type-arg]
    once = REDACTOR.values(values)
    assert REDACTOR.values(once) == once
    if REDACTOR.is_clean(json.dumps(values)):
        assert once == values


@pytest.mark.parametrize("holding", [*forms(SECRET), *forms(PLAIN), *TOKENS, "PASSWORD=abcdef"])
def test_the_fast_answer_never_passes_a_secret(holding: str) -> None:
    assert not REDACTOR.is_clean(json.dumps({"a": [f"x {holding} y"]}))
    assert not REDACTOR.is_clean(json.dumps({"a": {holding: 1}}))


def test_the_fast_answer_passes_an_ordinary_event() -> None:
    assert REDACTOR.is_clean('{"action":"node.drain","attempt":1,"nodes":["gpu-017"]}')


def test_a_redactor_does_not_show_what_it_knows() -> None:
    assert PLAIN not in repr(REDACTOR)
    assert PLAIN not in str(REDACTOR)


def test_too_short_secrets_do_not_fill_every_text_with_masks() -> None:
    assert Redactor(["", "a", "no"]).text("a node is not up") == "a node is not up"


cuts = st.lists(st.integers(1, 40), min_size=1, max_size=30)


def streamed(redactor: Redactor, data: bytes, sizes: list[int]) -> str:
    """What a stream shows when the data arrives in pieces of these sizes, over and over."""
    stream, shown, at, turn = redactor.stream(), "", 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        shown += stream.feed(data[at : at + size])
        at, turn = at + size, turn + 1
    return shown + stream.close()


@given(
    sizes=cuts,
    filler=st.integers(440, 520) | st.integers(940, 1040),
    form=st.sampled_from([*forms(SECRET), *TOKENS[:5]]),
)
def test_a_secret_cut_in_two_across_reads_is_masked_as_if_it_came_at_once(
    sizes: list[int], filler: int, form: str
) -> None:
    # The stream first looks at 1,024 characters and shows half: secrets lie across both places.
    lead, between = ("line of output\n" * 80)[: filler - 1] + " ", "more\n" * 120
    text = f"{lead}{form} rest\n{between}{form}"
    shown = streamed(REDACTOR, text.encode(), sizes)
    assert shown == REDACTOR.text(text)
    assert form not in shown


@given(data=st.binary(max_size=3000), sizes=cuts)
def test_bytes_that_are_not_text_survive_a_stream(data: bytes, sizes: list[int]) -> None:
    shown = streamed(Redactor(), data, sizes)
    assert shown == Redactor().text(data.decode("utf-8", "backslashreplace"))


def test_a_key_of_any_length_is_masked_in_a_stream_and_does_not_fill_the_memory() -> None:
    stream, shown = REDACTOR.stream(), ""
    lines = [b"-----BEGIN PRIVATE KEY-----\n", *[b"TUlJRXZnSUJBREFOQmdrcWhraUc5\n"] * 9000]
    for line in [b"before\n", *lines, b"-----END PRIVATE KEY-----\nafter\n"]:
        shown += stream.feed(line)
        assert len(stream._buffer) < 200_000
    shown += stream.close()
    assert "TUlJ" not in shown
    assert shown.startswith("before\n[redacted]")
    assert shown.endswith("[redacted]\nafter\n")


def test_output_without_secrets_is_shown_before_the_stream_ends() -> None:
    stream = REDACTOR.stream()
    assert stream.feed(b"x\n" * 4000)
