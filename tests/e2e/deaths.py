"""When a job dies with its slurmd, reckoned here and not by the program that is tested."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bot.testbed import SlurmTestbed

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Death:
    """A slurmd killed in this span of time."""

    earliest: datetime
    latest: datetime
    timeout: timedelta

    def minutes(self) -> set[str]:
        """By when slurmctld has given its node up, as a card may say it.

        The timeout counts from the last ping that was answered, and is seen at the next round of
        pings: one comes each third of it, and at least each 100 seconds.
        """
        wait = self.timeout + min(self.timeout / 3, timedelta(seconds=100))
        moments = (moment + wait for moment in (self.earliest, self.latest))
        rounded = (moment.replace(second=0, microsecond=0) + MINUTE for moment in moments)
        return {f"{moment:%H:%M} UTC" for moment in rounded}


def assert_told(death: Death, text: str) -> None:
    """A finished card names the one minute by which the job would have died, and it is still to come.

    A minute of the next day has its date before it.
    """
    (minute,) = set(re.findall(r"would have died by (?:\d\d-\d\d )?(\d\d:\d\d UTC)", text))
    assert minute in death.minutes()
    assert datetime.now(UTC) < death.earliest + death.timeout


def killed(testbed: SlurmTestbed, node: str) -> Death:
    """Kill slurmd on a node."""
    before = datetime.now(UTC)
    testbed.kill_slurmd(node)
    timeout = timedelta(seconds=testbed.options.slurmd_timeout)
    return Death(before, datetime.now(UTC), timeout)
