"""Shell completion of the verbs' words: names of nodes, runs, runbooks and people from the running bot.

Called by `bot.cli_verbs` when a shell asks. Whatever is in the way (no bot, no right, no time) gives no
names and no message: a person who presses TAB must never wait for it or read about it.
"""

import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from bot.commands import Kind, Verb, VerbSpec
from bot.local_client import BotAway, talk
from bot.local_wire import Ask
from config.json_values import Json
from config.permissions import Permission

LONGEST = 0.25
"""Seconds for everything that is asked of the bot; together with starting Python below 0.3 s or so."""
MOST = 500
"""Names that are offered: more than that nobody reads, and shells grow slow."""
_STATES = ("out", "idle", "allocated", "mixed", "down", "drain", "not_responding", "invalid_reg")


def candidates(spec: VerbSpec, typed: Sequence[str], begun: str, bot: Path) -> list[str]:
    """What may be written where `begun` stands, after the words that were `typed` already."""
    words = [word for word in typed if not word.startswith("--")]
    if begun.startswith("--"):
        return _beginning(begun, (f"--{name}" for name in sorted(spec.flags | spec.options)))
    if not spec.takes or len(words) >= spec.words[1]:
        return []
    kinds = spec.takes[min(len(words), len(spec.takes) - 1)]
    if spec.verb is Verb.LIST and words[:1] != ["nodes"] and words:
        return []
    end = time.monotonic() + LONGEST
    found = [
        name for kind in kinds for name in _names(kind, begun, lambda *said: _ask(bot, said, end))
    ]
    return _beginning(begun, found)[:MOST]


def _beginning(begun: str, names: Iterator[str] | Sequence[str]) -> list[str]:
    return list(dict.fromkeys(name for name in names if name.startswith(begun)))


def _names(kind: str, begun: str, ask: Callable[..., Sequence[Json]]) -> Iterator[str]:
    """Everything of one kind, or the word itself."""
    match kind:
        case Kind.NODE:
            rows = ask("nodes", "--like", begun) if begun else ask("nodes")
            yield from (str(row["node"]) for row in rows if isinstance(row, Mapping))
        case Kind.RUN:
            yield from (_first(row) for row in ask("runs"))
        case Kind.RUNBOOK:
            yield from (_first(row) for row in ask("runbooks"))
        case Kind.PERSON:
            yield from (_first(row).rstrip(":") for row in ask("people"))
        case Kind.PERMISSION:
            yield from (permission.value for permission in Permission)
        case Kind.STATE:
            yield from _STATES
        case Kind.VERB:
            yield from (verb.value for verb in Verb)
        case word:
            yield word


def _first(row: Json) -> str:
    return str(row).partition(" ")[0]


def _ask(bot: Path, said: Sequence[str], end: float) -> Sequence[Json]:
    """The rows of one list; none when it is not answered in time."""
    ask = Ask(words=("list", *said), key=f"tab-{secrets.token_hex(16)}", follow=False)
    came: queue.SimpleQueue[Sequence[Json]] = queue.SimpleQueue()
    # A thread of its own is left behind when the time is over: nothing in it can make TAB wait.
    threading.Thread(target=_hear, args=(bot, ask, said[0], came), daemon=True).start()
    try:
        return came.get(timeout=max(0.0, end - time.monotonic()))
    except queue.Empty:
        return []


def _hear(bot: Path, ask: Ask, what: str, came: queue.SimpleQueue[Sequence[Json]]) -> None:
    try:
        rows = next(talk(bot, ask))["reply"]["data"][what]
    except (BotAway, ValueError, LookupError, TypeError):
        rows = []
    came.put(rows if isinstance(rows, list) else [])
