"""For how long after a start of slurmctld nothing that it says of its nodes is acted on (hands 1). Pure.

Used by `actions.node` and `actions.service`, so that both say the same sentence. The moment is named
and not the seconds that are left: a wait that stays the same is recorded once.
"""

from datetime import datetime, timedelta

from actions.cluster import Controller
from actions.contract import Mark

_MINUTE = timedelta(minutes=1)
SAVED = timedelta(seconds=10)
"""slurmctld saves its state every 5 s, and a drain that it had shown was gone after a kill a second
later (measured, hands 1): what leans on a drain waits until it is older than this, and looks again."""


def settles_at(controller: Controller, quiet: timedelta, now: datetime) -> datetime | None:
    """When its nodes may be believed; None when they may be already."""
    started = controller.booted_at
    if started is None or now - started >= quiet:
        return None
    return started + quiet


def saved_at(mark: Mark, now: datetime) -> datetime | None:
    """When slurmctld will have saved this mark; None when it has."""
    return mark.at + SAVED if now < mark.at + SAVED else None


def just_started(controller: Controller, until: datetime) -> str:
    """Why one waits, and until which minute."""
    shown = until + _MINUTE if until.second or until.microsecond else until
    return f"slurmctld of {controller.cluster} has just started: wait until {shown:%H:%M} UTC"
