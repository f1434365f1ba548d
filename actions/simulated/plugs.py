"""The hands of whoever directs the play: pull plugs, move time, prepare faults, read what was done.

Used by the sandbox and by tests, over the same socket as the bot. The bot itself never has one.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from actions.simulated import stage
from actions.simulated.client import Line
from actions.simulated.state import Effect, Happening
from actions.simulated.wire import Sort
from actions.simulated.writes import FaultKind, When, WriteVerb


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugs:
    """Controls of one simulated cluster."""

    path: Path

    def pull(self, plug: str, **arguments: object) -> Any:
        """Pull the plug of that name (`plug_verbs`), for example `pull("kill_slurmd", node="gpu-017")`.

        Raises Rejected, UnknownNode, ValueError for a plug or an argument that does not exist.
        """
        return stage.ANYTHING.validate_json(self._line().ask(Sort.PLUG, plug, arguments))

    def forward(self, by: timedelta) -> datetime:
        """Let time pass at once; answers the new present of that world."""
        return stage.MOMENT.validate_json(self._stage("forward", by=by))

    def now(self) -> datetime:
        """The present of that world."""
        return stage.MOMENT.validate_json(self._stage("now"))

    def effects(self, after: int = 0) -> tuple[Effect, ...]:
        """What was changed by writes, in order; `after` leaves out the first so many."""
        return stage.EFFECTS.validate_json(self._stage("effects", after=after))

    def history(self) -> tuple[Happening, ...]:
        """What followed by itself."""
        return stage.HISTORY.validate_json(self._stage("history"))

    def fail_next(
        self,
        kind: FaultKind,
        verb: WriteVerb | None = None,
        delay: timedelta = timedelta(seconds=3),
        *,
        holds: bool = False,
    ) -> None:
        """Let the next write (of that verb) go wrong; `holds` keeps its connection open."""
        self._stage("fail_next", kind=kind, verb=verb, delay=delay, holds=holds)

    def at_next_write(
        self, when: When, *plugs: dict[str, object], verb: WriteVerb | None = None
    ) -> None:
        """Put a foreign act exactly before or after the next write (of that verb)."""
        self._stage("at_next_write", when=when, plugs=plugs, verb=verb)

    def forget_prepared(self) -> None:
        """Drop faults and foreign acts that no write has met."""
        self._stage("forget_prepared")

    def _stage(self, call: str, /, **arguments: object) -> bytes:
        """A call of the director."""
        return self._line().ask(Sort.STAGE, call, arguments)

    def _line(self) -> Line:
        """The line of a director: patient, because moving time by days takes a while."""
        return Line(path=self.path, caller="director", limit=timedelta(seconds=60))
