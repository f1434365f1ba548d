"""A page as the texts and JSON that its receivers read. Pure.

Called by the back ends. A page can carry text from outside (job names, Reasons), and it will be shown
by renderers that we do not know: control and bidi characters are written out, angle brackets, which
make mentions and links in chat systems, become ‹ and ›, and every length is bounded.
"""

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from datetime import datetime, timedelta

from actions.hands import Page
from config.json_values import Json

LASTS = timedelta(hours=24)
"""A firing alert ends by itself only then: Alertmanager's own resolve_timeout of five minutes is for
senders that repeat, and would call the trouble over while nobody has looked."""

MOST_DETAILS = 24
LONGEST_NAME = 64
LONGEST_VALUE = 1_000
LONGEST_SUMMARY = 200
LONGEST_KEY = 200
LONGEST_MENTION = 3_000

_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_]+", re.ASCII)
_NOT_ENDED = "0001-01-01T00:00:00Z"
"""How Go writes the zero time; receivers of webhook format 4 take it for "not over"."""


def plain(text: str, longest: int) -> str:
    """Text from outside in one line that no terminal, chat or template takes for anything else."""
    whole = "".join(_shown(character) for character in text[: longest + 1])
    return whole if len(whole) <= longest else f"{whole[: longest - 1]}…"


def labels(page: Page) -> dict[str, str]:
    """What makes it the same alert each time: never anything that differs between repeats."""
    return {
        "alertname": "Nodewarden",
        "nodewarden_key": stable_key(page),
        "severity": plain(page.severity, LONGEST_NAME),
        "service": "nodewarden",
    }


def stable_key(page: Page) -> str:
    """The page's key, shortened without making two keys equal."""
    key = plain(page.key, LONGEST_KEY)
    if key == page.key:
        return key
    return f"{key[: LONGEST_KEY - 17]}-{_digest(page.key)}"


def annotations(page: Page) -> dict[str, str]:
    """What people read; names in the form that Alertmanager's templates can use."""
    shown: dict[str, str] = {}
    for name, value in page.details.items():
        if len(shown) == MOST_DETAILS:
            shown["left_out"] = f"{len(page.details) - MOST_DETAILS} further details"
            break
        shown[_name(name, shown)] = plain(value, LONGEST_VALUE)
    return {**shown, "summary": plain(page.summary, LONGEST_SUMMARY)}


def alerts(page: Page, now: datetime) -> list[Mapping[str, Json]]:
    """The body for Alertmanager's API v2. A resolved one ends now; it needs no start."""
    times = (
        {"endsAt": _moment(now)}
        if page.resolved
        else {"startsAt": _moment(now), "endsAt": _moment(now + LASTS)}
    )
    return [{"labels": labels(page), "annotations": annotations(page), **times}]


def webhook(page: Page, now: datetime) -> Mapping[str, Json]:
    """The body that Alertmanager's webhook receivers expect, format 4."""
    common = {
        "labels": labels(page),
        "annotations": annotations(page),
    }
    status = "resolved" if page.resolved else "firing"
    return {
        "version": "4",
        "groupKey": stable_key(page),
        "truncatedAlerts": 0,
        "status": status,
        "receiver": "nodewarden",
        "groupLabels": {"nodewarden_key": stable_key(page)},
        "commonLabels": common["labels"],
        "commonAnnotations": common["annotations"],
        "externalURL": "",
        "alerts": [
            {
                "status": status,
                **common,
                "startsAt": _moment(now),
                "endsAt": _moment(now) if page.resolved else _NOT_ENDED,
                "generatorURL": "",
                "fingerprint": _digest(page.key),
            }
        ],
    }


def mention(page: Page) -> str:
    """The text of a chat message: summary first, because a phone shows only that."""
    state = "Resolved: " if page.resolved else ""
    lines = [f"{state}{plain(page.summary, LONGEST_SUMMARY)}"]
    lines += [f"{name}: {value}" for name, value in annotations(page).items() if name != "summary"]
    text = "\n".join(lines).replace("&", "&amp;")
    return text if len(text) <= LONGEST_MENTION else f"{text[: LONGEST_MENTION - 1]}…"


def _name(name: str, taken: Mapping[str, str]) -> str:
    """A name for an annotation: letters, digits and underscores, not taken yet."""
    base = _NOT_IN_NAME.sub("_", name)[:LONGEST_NAME].strip("_") or "detail"
    if base[0].isdigit():
        base = f"_{base}"
    found, number = base, 2
    while found in taken or found in {"summary", "left_out"}:
        found, number = f"{base}_{number}", number + 1
    return found


def _shown(character: str) -> str:
    """One character, or its escape when it is invisible or steers a renderer."""
    if character in "<>":
        return "‹" if character == "<" else "›"
    if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
        return character.encode("unicode_escape").decode("ascii")
    return character


def _digest(text: str) -> str:
    """Sixteen hex digits that stand for this text."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def _moment(moment: datetime) -> str:
    """RFC 3339."""
    return moment.isoformat()
