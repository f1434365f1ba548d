"""Ends the pages about a run that a person has in hand, inside the transaction that says so.

Called by `runbooks.requests`, `runbooks.stops`, `runbooks.journal` and the worker's net. What was not
paged, or is over already, is not told again: the receiver would ring, or wonder.
"""

from audit_log.ledger import Transaction
from config.ids import InstanceId
from runbooks.run import Run
from runbooks.run_events import STUCK, page_key, page_over

_OPEN = "SELECT 1 FROM pages WHERE key = ? AND resolved = 0"


def pages_over(transaction: Transaction, run: Run, why: str, instance: InstanceId) -> None:
    """Somebody has this run in hand: its alerts must not go on ringing for a day."""
    for about in ("", STUCK):
        end_page(transaction, run, f"in hand: {why}", instance, about)


def end_page(
    transaction: Transaction, run: Run, why: str, instance: InstanceId, about: str
) -> None:
    """Say that one page about this run is over, if it is out."""
    if transaction.query(_OPEN, (page_key(run.id, instance, about),)):
        transaction.append(page_over(run, why, instance, about))
