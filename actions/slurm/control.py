"""Which slurmctld is in control, and since when as far as this bot saw it (hands 1).

Used by `actions.slurm.cli`. A take-over shows in no time of Slurm's: the backup's BOOT_TIME is that of
its own start as a stand-by, maybe months ago, while after the take-over its nodes are UNKNOWN like after
a start (measured on 22.05.8). So the change itself is the start from which the quiet time counts.
"""

import threading
from dataclasses import replace
from datetime import datetime

from actions.cluster import Controller


class Control:
    """Remembers who answered last."""

    def __init__(self) -> None:
        """Has seen none."""
        self._lock = threading.Lock()
        self._in_control: str | None = None
        self._since: datetime | None = None

    def seen(self, controller: Controller, now: datetime) -> Controller:
        """The controller, with the take-over as its start where that was later."""
        with self._lock:
            first = self._in_control is None
            if first and controller.backup:
                self._since = now  # it may have taken over a second ago
            if not first and controller.in_control != self._in_control:
                self._since = now
            self._in_control = controller.in_control
            since = self._since
        if since is None or (controller.booted_at is not None and controller.booted_at > since):
            return controller
        return replace(controller, booted_at=since.replace(microsecond=0))
