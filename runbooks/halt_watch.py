"""Writes into the ledger what people do to the halt file by hand: make it, or remove it.

Called by the worker at each tick. It only records; the file alone decides (`runbooks.halt`).
"""

from audit_log.ledger import Ledger
from audit_log.records import Event, EventKind
from config.actors import ENGINE
from runbooks.halt import HaltFile


class HaltWatch:
    """Compares the file with the last word of the ledger."""

    def __init__(self, ledger: Ledger, halt: HaltFile) -> None:
        """Records nothing by itself."""
        self._ledger = ledger
        self._halt = halt
        self._differed = False

    def tick(self) -> None:
        """Record a difference that lasts: a command at a door writes file and record by itself, one
        shortly after the other.
        """
        why = self._halt.reason()
        known = bool(self._ledger.query("SELECT 1 FROM halts"))
        differs = known != (why is not None)
        if differs and self._differed:
            self._record(why)
        self._differed = differs

    def _record(self, why: str | None) -> None:
        kind = EventKind.HALT_CLEARED if why is None else EventKind.HALT_SET
        said = (
            "the halt file was removed by hand"
            if why is None
            else f"halt file found: {why or 'no reason given'}"
        )
        event = Event(kind=kind, actor=ENGINE.id, data={"why": said[:500]})
        self._ledger.commit(lambda transaction: transaction.append(event))
