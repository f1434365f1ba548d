"""The words between the command line and the running bot: one JSON object a line. Pure.

The asker says what it wants and never who it is: the server reads that from the socket itself.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from bot.replies import Reply
from config.json_values import Json, JsonMap
from runbooks.explain import Card

LONGEST_REQUEST = 64 * 1024
"""Bytes of one request line."""

_EXPECTED = (
    'nothing was done: expected one line {"words": ["status"], "key": "…", "follow": false}, '
    "as `nodewarden` sends it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request."""

    words: tuple[str, ...]
    key: str
    """Made by the asker; a request that is sent again with it is done once."""
    follow: bool
    """Whether the cards of a started run are wanted until it rests."""


class NotUnderstood(ValueError):
    """A line that is no request."""


def encode_ask(ask: Ask) -> bytes:
    """One line."""
    plain = {"words": list(ask.words), "key": ask.key, "follow": ask.follow}
    return json.dumps(plain).encode() + b"\n"


def decode_ask(line: bytes) -> Ask:
    """The request in a line. Raises NotUnderstood."""
    try:
        plain = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise NotUnderstood(f"the request is not JSON; {_EXPECTED}") from problem
    if not isinstance(plain, dict):
        raise NotUnderstood(f"the request is not an object; {_EXPECTED}")
    words, key, follow = plain.get("words"), plain.get("key"), plain.get("follow")
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise NotUnderstood(f"words must be a list of texts; {_EXPECTED}")
    if not isinstance(key, str) or len(key) > 100 or not isinstance(follow, bool):
        raise NotUnderstood(f"key must be a short text and follow a truth value; {_EXPECTED}")
    return Ask(words=tuple(words), key=key, follow=follow)


def encode_reply(reply: Reply, card: Card | None) -> bytes:
    """The answer as a line; `card` where it is about a run."""
    plain: dict[str, Json] = {
        "reply": {
            "kind": reply.kind.value,
            "lines": list(reply.lines),
            "data": reply.data,
            "run": reply.run,
        }
    }
    if card is not None:
        plain["card"] = card_json(card)
    return json.dumps(plain).encode() + b"\n"


def encode_card(card: Card) -> bytes:
    """A card that follows a reply."""
    return json.dumps({"card": card_json(card)}).encode() + b"\n"


def card_json(card: Card) -> JsonMap:
    """A card for programs."""
    return {
        "run": card.run,
        "revision": card.revision,
        "state": card.state.value,
        "final": card.state.final,
        "acts": card.state.acts,
        "title": card.title,
        "lines": list(card.lines),
        "steps": list(card.steps),
        "next": [button.typed for button in card.buttons],
    }


def texts(value: Json) -> Sequence[str]:
    """A list of texts out of an answer; empty for anything else."""
    return [str(entry) for entry in value] if isinstance(value, list | tuple) else []
