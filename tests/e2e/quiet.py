"""The first minute of a slurmctld, in which no bot of ours acts (hands 1): waited out once."""

import re
from datetime import UTC, datetime, timedelta

from bot.testbed import SlurmTestbed

QUIET = timedelta(seconds=62)
"""That minute, and a little more."""
_BOOTED = re.compile(r"^BOOT_TIME\s*= (\S+)$", re.MULTILINE)


def settle(testbed: SlurmTestbed) -> None:
    """Wait until a bot believes the controller; other clusters may be started meanwhile."""
    found = _BOOTED.search(testbed.run("scontrol", "show", "config"))
    assert found is not None
    over = datetime.fromisoformat(f"{found[1]}+00:00") + QUIET
    testbed.wait_for(lambda: datetime.now(UTC) > over, "slurmctld is settled")
