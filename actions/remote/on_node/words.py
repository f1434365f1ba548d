"""What the program may be told, and its exit codes. Every argument passes one of these checks first.

Used by every other module here. Nothing in this module touches the machine.
"""

from __future__ import annotations

import re

REFUSED = 64
"""Not a verb, not an allowed argument: nothing was done."""
BUSY = 75
"""Another effect is under way on this node: nothing was done."""
OUTCOME_UNKNOWN = 76
"""This effect was begun before and its end was never recorded: nothing was done now."""
MISCONFIGURED = 78
"""The program's own configuration cannot be trusted or understood: nothing was done."""
TIMED_OUT = 124
"""It was ended at its time limit; for an effect: what became of it is not known."""

LONGEST_PATH = 1024
_UNIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,127}")
_EFFECT = re.compile(r"nw-[A-Za-z0-9][A-Za-z0-9_.-]{0,119}")
_USER = re.compile(r"[a-z_][a-z0-9_.-]{0,31}")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:-]{0,252}")
_GLOB = re.compile(r"[A-Za-z0-9_.*?\[\]-]{1,128}")
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


class Refused(Exception):
    """What was asked is not on the list; says what would be."""


class Failed(Exception):
    """It was allowed and could not be done."""


def _matched(pattern: re.Pattern[str], word: str, what: str) -> str:
    # `fullmatch` and no `$`: that would let a newline at the end pass.
    if not pattern.fullmatch(word) or not word.isascii():
        raise Refused(f"{word[:60]!a} is not {what}")
    return word


def unit(word: str, allowed: tuple[str, ...]) -> str:
    """A unit from the list of the configuration."""
    name = _matched(_UNIT, word, "the name of a unit")
    if name not in allowed:
        raise Refused(
            f"unit {name} is not in the list of /etc/nodewarden/helper.conf ({' '.join(allowed)})"
        )
    return name


def effect(word: str) -> str:
    """The name of an effect, as the bot makes them."""
    return _matched(_EFFECT, word, "an effect id (nw-…)")


def user(word: str) -> str:
    """The name of an account; whether it may be used is decided elsewhere."""
    return _matched(_USER, word, "the name of a user")


def host(word: str) -> str:
    """A host name or an address."""
    return _matched(_HOST, word, "a host name or address")


def pattern(word: str) -> str:
    """A pattern for names within one folder."""
    return _matched(_GLOB, word, "a pattern of letters, digits, _ . - * ? [ ]")


def number(word: str, most: int) -> int:
    """A whole number from 1."""
    found = int(_matched(_NUMBER, word, "a whole number"))
    if found > most:
        raise Refused(f"{found} is more than {most}")
    return found


def path(word: str) -> str:
    """An absolute path without detours; bytes that are not UTF-8 are allowed, control characters not."""
    if not word.startswith("/") or len(word) > LONGEST_PATH:
        raise Refused(f"{word[:60]!a} is not an absolute path of at most {LONGEST_PATH} characters")
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in word):
        raise Refused(f"{word[:60]!a}: a path with control characters is not read")
    if any(part in {"", ".", ".."} for part in word[1:].split("/")):
        raise Refused(f"{word[:60]!a}: a path with empty, `.` or `..` parts is not read")
    return word


def below(word: str, roots: tuple[str, ...]) -> str:
    """The path, if one of the roots holds it."""
    if not any(word.startswith(f"{root}/") for root in roots):
        listed = " ".join(roots) or "there are none"
        raise Refused(f"{word[:60]!a} lies below no root of /etc/nodewarden/helper.conf ({listed})")
    return word
