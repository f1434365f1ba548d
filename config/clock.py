"""Time as a value that is passed in, so that deciders stay pure and tests move it by hand."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """One reading of both clocks: the wall in UTC, and the monotonic one that no operator can set."""

    wall: datetime
    monotonic: timedelta


class Clock(Protocol):
    """Reads the time; the only implementation on a real clock is `config.system_clock`."""

    def now(self) -> Instant:
        """The time now."""
        ...


def microseconds(moment: datetime) -> int:
    """Whole microseconds since the epoch, the form in which the ledger stores time."""
    return (moment - EPOCH) // MICROSECOND


def from_microseconds(value: int) -> datetime:
    """The aware UTC datetime of a ledger time."""
    return EPOCH + value * MICROSECOND
