"""When a run is to be looked at again, between the engine and the worker. Pure."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """Look at this run again at `at`; None: only news will move it."""

    at: datetime | None
