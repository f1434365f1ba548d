"""Pages once when the bot itself is cut off from a cluster, and says when it is back (hands 2).

A duty of the worker. What a bot that reaches none of its reference hosts sees of nodes is no finding, so
every node that falls silent then would otherwise be a page of its own. It never acts.
"""

import json
from collections.abc import Callable, Mapping
from datetime import timedelta

from actions.vantage import References
from audit_log.ledger import Ledger, Transaction
from audit_log.records import Event, EventKind
from config.actors import ENGINE
from config.clock import Clock
from config.ids import ClusterName
from config.json_values import JsonMap

EVERY = timedelta(seconds=30)
TURNS = 2
"""So often in a row nothing is reached before somebody is woken: one lost packet is no cut."""


class UplinkWatch:
    """Tries the reference hosts of every cluster that named some."""

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        references: Mapping[ClusterName, Callable[[], References]],
    ) -> None:
        """Tries nothing yet."""
        self._ledger = ledger
        self._clock = clock
        self._references = references
        self._last: timedelta | None = None
        self._missed: dict[ClusterName, int] = {}

    def tick(self) -> None:
        """Try again when it is time."""
        now = self._clock.now().monotonic
        if self._last is not None and now - self._last < EVERY:
            return
        self._last = now
        for cluster, ask in self._references.items():
            found = ask()
            cut = found.named > 0 and found.reached == 0
            self._missed[cluster] = self._missed.get(cluster, 0) + 1 if cut else 0
            if not cut or self._missed[cluster] >= TURNS:
                self._tell(cluster, found.named if cut else 0)

    def _tell(self, cluster: ClusterName, unreached: int) -> None:
        """A page that is out is not repeated, and one that is not out is not ended."""
        key = f"nodewarden/{self._ledger.instance}/uplink/{cluster}"
        why = (
            f"the bot is cut off from {cluster}: it reaches none of its {unreached} reference hosts; "
            "it diagnoses nothing and does nothing there until it does"
            if unreached
            else f"the bot reaches reference hosts of {cluster} again"
        )
        data: JsonMap = {
            "key": key,
            "summary": f"nodewarden: {why}"[:200],
            "details": json.dumps({"cluster": cluster, "why": why}),
            "resolved": not unreached,
        }

        def decide(transaction: Transaction) -> None:
            out = transaction.query("SELECT 1 FROM pages WHERE key = ? AND resolved = 0", (key,))
            if bool(out) != bool(unreached):
                event = Event(
                    kind=EventKind.PAGE_INTENDED, actor=ENGINE.id, cluster=cluster, data=data
                )
                transaction.append(event)

        self._ledger.commit(decide)
