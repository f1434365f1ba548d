"""When the controller will give a silent node up, which is when its jobs die (table A1). Pure.

Assumptions, from slurmctld: every node is pinged each SlurmdTimeout/3, at most each 100 s, so the
last answer lies between one such interval before slurmd stopped and the stop itself. DOWN is set
once SlurmdTimeout has passed since the last answer, seen at the next round of pings.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

_LONGEST_PING = timedelta(seconds=100)
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """The earliest and the latest moment."""

    earliest: datetime
    latest: datetime


def death(stopped_at: datetime, slurmd_timeout: timedelta) -> Death | None:
    """When a node whose slurmd stopped then will be set DOWN; None where that never happens."""
    if slurmd_timeout <= timedelta(0):
        return None
    ping = min(slurmd_timeout / 3, _LONGEST_PING)
    return Death(
        earliest=stopped_at - ping + slurmd_timeout, latest=stopped_at + slurmd_timeout + ping
    )


def minute(moment: datetime, *, up: bool = False) -> str:
    """UTC to the minute, as people read it; `up` rounds to the minute after."""
    whole = moment.replace(second=0, microsecond=0)
    if up and whole != moment:
        whole += _MINUTE
    return f"{whole:%Y-%m-%dT%H:%MZ}"
