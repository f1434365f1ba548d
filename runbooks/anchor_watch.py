"""Pages about an anchor that cannot be reached for long. Told by `audit_log.anchoring`, set by wiring.

It only records and pages; runs go on, because an audit log that is whole is no reason to leave a
cluster broken.
"""

import json

from audit_log.ledger import Ledger, Transaction
from audit_log.records import Event, EventKind
from config.actors import ENGINE
from config.json_values import JsonMap


class AnchorWatch:
    """One page for each sink in trouble, and its end."""

    def __init__(self, ledger: Ledger) -> None:
        """Pages nobody yet."""
        self._ledger = ledger

    def tell(self, sink: str, problem: str) -> None:
        """A sink is in trouble, or (an empty text) works again; a page that is out is not repeated."""
        key = f"nodewarden/{self._ledger.instance}/anchor/{sink}"[:200]
        why = (
            f"the audit log's anchor {sink} is not reached: {problem}"
            if problem
            else f"the audit log's anchor {sink} is reached again"
        )
        data: JsonMap = {
            "key": key,
            "summary": f"nodewarden: {why}"[:200],
            "details": json.dumps({"why": why[:1000]}),
            "resolved": not problem,
        }

        def decide(transaction: Transaction) -> None:
            out = transaction.query("SELECT 1 FROM pages WHERE key = ? AND resolved = 0", (key,))
            if bool(out) != bool(problem):
                transaction.append(Event(kind=EventKind.PAGE_INTENDED, actor=ENGINE.id, data=data))

        self._ledger.commit(decide)
