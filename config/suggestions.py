"""The end of a message about a name that does not exist: what was probably meant. Pure."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean X?`, or the names there are, or nothing."""
    names = sorted(known)
    close = get_close_matches(name.lower(), names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; known are {', '.join(names)}" if names else ""
