"""Durations as people write them: `90s`, `15m`, `2h`, `1d`. Pure; used by settings and runbooks."""

import re
from datetime import timedelta

_DURATION = re.compile(r"([1-9][0-9]{0,6})(ms|s|m|h|d)", re.ASCII)
_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}


def parse_duration(text: str) -> timedelta:
    """The duration that `text` names; zero and bare numbers are refused. Raises ValueError."""
    found = _DURATION.fullmatch(text)
    if not found:
        raise ValueError("a duration is a whole number and a unit: 500ms, 90s, 15m, 2h or 1d")
    return int(found[1]) * _UNITS[found[2]]


def format_duration(duration: timedelta) -> str:
    """The shortest exact text of `duration`, in the largest unit that divides it."""
    for unit in ("d", "h", "m", "s", "ms"):
        if duration % _UNITS[unit] == timedelta(0):
            return f"{duration // _UNITS[unit]}{unit}"
    raise ValueError("durations finer than a millisecond are not written")
