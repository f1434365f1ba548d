"""From typed words to a command, the same for every door. Pure.

What Slack and phones do to text (smart quotes, long dashes, no-break spaces, linked hosts, escaped
entities) is put right here, once; what is left over that is not plain is refused by name, because
an invisible character in a node name must never be guessed away (slack.md 1.6).
"""

import difflib
import re
import shlex
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bot.commands import VERBS, Verb, VerbSpec

LONGEST = 4000
"""Characters of one command; Slack's own limit for a slash command is lower."""

_QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'"})
_SPACES = re.compile(r"[\u00a0\u2007\u202f\u3000\u2009\t\r\n]")
_DASH_WORD = re.compile(r"(?<!\S)[\u2013\u2014](?=[A-Za-z])")
_DASH = re.compile(r"[\u2010-\u2015\u2212]")
_TOKEN = re.compile(r"<([^<>]*)>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One understood command."""

    verb: Verb
    words: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()
    options: Mapping[str, str] = field(default_factory=dict)
    text: str
    """As it was understood, to be echoed."""

    @property
    def changes(self) -> bool:
        """Whether it can change anything; such a command is committed before it is acknowledged."""
        spec = VERBS[self.verb]
        return spec.changes or (bool(self.words) and self.words[0] in spec.changing)

    def rest(self, start: int) -> str:
        """The words from `start` on, as one text (a reason)."""
        return " ".join(self.words[start:])


class Misread(Exception):
    """Text that is not a command; the message says what was read and what would be right."""


def parse(text: str) -> Command:
    """The command in plain text. Raises Misread."""
    if len(text) > LONGEST:
        raise Misread(
            f"that is {len(text)} characters; a command has at most {LONGEST}: say it shorter"
        )
    if "\n" in text.strip():
        raise Misread("a command is one line, and this has more: say each by itself")
    plain = straighten(text)
    try:
        words = shlex.split(plain)
    except ValueError as problem:
        raise Misread(
            f"a quotation mark is not closed: close it or leave it out. I read: {_shown(plain)}"
        ) from problem
    return parse_words(words)


def parse_words(words: Sequence[str]) -> Command:
    """The command in words that a shell has parted already. Raises Misread."""
    size = sum(len(word) for word in words)
    if size > LONGEST:
        raise Misread(f"that is {size} characters; a command has at most {LONGEST}: say it shorter")
    words = [_whole(word) for word in words]
    if not words:
        return Command(verb=Verb.HELP, text="help")
    return _command(VERBS[_verb(words[0])], list(words[1:]), shlex.join(words))


def straighten(text: str) -> str:
    """Typographic quotes, dashes and spaces as a keyboard without them would have typed them."""
    text = _SPACES.sub(" ", text).replace("…", "...").translate(_QUOTES)
    text = _DASH_WORD.sub("--", text)
    return _DASH.sub("-", text).strip()


def from_slack(text: str) -> str:
    """Slack's escapes taken out: users as `@id`, links as their text, entities as characters.

    Raises Misread for a broadcast as an argument and for a link whose text names another host.
    """
    out: list[str] = []
    end = 0
    for match in _TOKEN.finditer(text):
        out.append(_entities(text[end : match.start()]))
        out.append(_token(match.group(1)))
        end = match.end()
    out.append(_entities(text[end:]))
    return "".join(out)


def _whole(word: str) -> str:
    """Bytes that are not UTF-8 written out: Python carries them as halves of a character, which
    nothing further down can store or send.
    """
    try:
        return word.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # such a half that stands for no byte: JSON can hold it
        return word.encode("utf-8", "backslashreplace").decode()


def _token(body: str) -> str:
    target, _, label = body.partition("|")
    if target.startswith("@"):
        return target
    if target.startswith("#"):
        return target
    if target.startswith("!subteam^"):
        return f"@{target.removeprefix('!subteam^')}"
    if target.startswith("!"):
        raise Misread(f"a broadcast ({_shown(target)}) cannot be part of a command: leave it out")
    host = re.sub(r"^(?:https?://|mailto:)", "", target).rstrip("/")
    if label and label != host:
        raise Misread(f"a link reads {_shown(label)} but leads to {_shown(host)}: type it as text")
    return host


def _entities(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _verb(word: str) -> Verb:
    if word in {"?", "-h", "--help"}:
        return Verb.HELP
    try:
        return Verb(word.lower())
    except ValueError as problem:
        near = difflib.get_close_matches(word.lower(), [verb.value for verb in Verb], n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else "; `help` shows what there is"
        raise Misread(f"there is no verb {_shown(word)}{hint}") from problem


def _command(spec: VerbSpec, words: list[str], plain: str) -> Command:
    taken: list[str] = []
    flags: set[str] = set()
    options: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if not word.startswith("--"):
            taken.append(word)
            continue
        name, _, value = word[2:].partition("=")
        if name in spec.flags and not value:
            flags.add(name)
        elif name in spec.options:
            options[name] = value or next(rest, "")
            if not options[name]:
                raise Misread(f"--{name} needs a value. Usage: {spec.usage}")
        else:
            raise Misread(f"{spec.verb} has no option {_shown(word)}. Usage: {spec.usage}")
    least, most = spec.words
    if not least <= len(taken) <= most:
        what = "too few words" if len(taken) < least else "too many words"
        raise Misread(f"{what}. Usage: {spec.usage}. I read: {_shown(plain)}")
    return Command(
        verb=spec.verb, words=tuple(taken), flags=frozenset(flags), options=options, text=plain
    )


def _shown(text: str) -> str:
    """Text from outside for a message: short, with everything invisible or unusual spelled out."""
    short = text[:80] + ("…" if len(text) > 80 else "")
    return "`" + "".join(_plain(character) for character in short) + "`"


def _plain(character: str) -> str:
    if character == "`":
        return "'"
    if character.isprintable() and unicodedata.category(character) not in {"Cf", "Cc", "Co"}:
        return character
    return f"U+{ord(character):04X}"
