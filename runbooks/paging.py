"""Sends the pages that the ledger says are owed, and records what became of each.

Called by the worker at each tick. Sending runs in a thread of its own, because a pager that hangs
must not keep runs from their turn. A page that nobody accepted is tried again and stays NOT SENT on
every card until it is; the receiver merges repeats by the key.
"""

import json
import logging
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta

from actions.contract import Page, Pager, PageReceipt
from audit_log.ledger import Ledger, Urgency
from audit_log.records import Event, EventKind
from config.actors import ENGINE
from config.clock import Clock, microseconds
from config.ids import RunId

log = logging.getLogger(__name__)

DEADLINE = timedelta(seconds=30)
"""For the whole chain of one page (slack.md 3: not accepted in 30 s = the next way, and say so)."""
RETRY = timedelta(seconds=30)
"""Before a page that nobody accepted is tried again, times the tries so far."""
MOST_RETRIES = 20
MOST_AT_ONCE = 20


class Paging:
    """The sender of pages; one per process."""

    def __init__(self, ledger: Ledger, pager: Pager, clock: Clock) -> None:
        """Starts nothing until there is something to send."""
        self._ledger = ledger
        self._pager = pager
        self._clock = clock
        self._sender = ThreadPoolExecutor(1, thread_name_prefix="pages")
        self._under_way: Future[None] | None = None

    def tick(self) -> None:
        """Begin to send what is owed, unless sending is under way."""
        if self._under_way is not None and not self._under_way.done():
            return
        owed = self._owed()
        if owed:
            self._under_way = self._sender.submit(self._send_all, owed)

    def close(self) -> None:
        """Finish what is under way."""
        self._sender.shutdown(wait=True)

    def _owed(self) -> list[tuple[Page, RunId | None]]:
        now = microseconds(self._clock.now().wall)
        rows = self._ledger.query(
            "SELECT key, run, summary, details, resolved FROM pages WHERE state = 'intended' "
            "OR (state = 'not_sent' AND tries < ? AND at_us + tries * ? <= ?) "
            "ORDER BY at_us LIMIT ?",
            (MOST_RETRIES, RETRY // timedelta(microseconds=1), now, MOST_AT_ONCE),
        )
        return [
            (
                Page(key=key, summary=summary, details=_texts(details), resolved=bool(resolved)),
                RunId(run) if run else None,
            )
            for key, run, summary, details, resolved in rows
        ]

    def _send_all(self, owed: list[tuple[Page, RunId | None]]) -> None:
        for page, run in owed:
            try:
                self._record(page, run, self._pager.send(page, deadline=DEADLINE))
            except Exception:  # one page must not keep the others from going out
                log.exception("page %s could not be sent or recorded", page.key)

    def _record(self, page: Page, run: RunId | None, receipts: tuple[PageReceipt, ...]) -> None:
        """Accepted is not delivered; the detail says by whom it was accepted, or by whom not."""
        accepted = next((receipt for receipt in receipts if receipt.accepted), None)
        tried = "; ".join(f"{one.backend}: {one.detail}" for one in receipts) or "no way is set up"
        kind = EventKind.PAGE_ACCEPTED if accepted else EventKind.PAGE_NOT_SENT
        detail = f"accepted by {accepted.backend}" if accepted else f"NOT SENT: {tried}"
        event = Event(
            kind=kind,
            actor=ENGINE.id,
            run=run,
            data={"key": page.key, "detail": detail[:1000], "tried": tried[:1000]},
        )
        self._ledger.commit(lambda transaction: transaction.append(event), Urgency.OUTCOME)


def _texts(details: str) -> dict[str, str]:
    return {str(key): str(value) for key, value in json.loads(details).items()}
