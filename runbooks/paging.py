"""Sends the pages that the ledger says are owed, and records what became of each.

Called by the worker at each tick. Sending runs in a thread of its own, because a pager that hangs
must not keep runs from their turn. A page that nobody accepted is tried again and stays NOT SENT on
every card until it is; the receiver merges repeats by the key.
"""

import json
import logging
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta

from actions.hands import Page, Pager, PageReceipt
from audit_log.ledger import Ledger, Urgency
from audit_log.records import Event, EventKind
from config.actors import ENGINE
from config.clock import Clock, microseconds
from config.ids import RunId

log = logging.getLogger(__name__)

DEADLINE = timedelta(seconds=30)
"""For the whole chain of one page (slack.md 3: not accepted in 30 s = the next way, and say so)."""
RETRY = timedelta(seconds=30)
"""Before a page that nobody accepted is tried again: one of these longer after each try, and never
given up, because a pager can be away for half a night.
"""
MOST_AT_ONCE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Owed:
    """A page that is to be sent."""

    page: Page
    run: RunId | None
    at_us: int

    @property
    def name(self) -> tuple[str, int]:
        """Which intent it is: the key alone is shared by all news of one trouble."""
        return self.page.key, self.at_us


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
        if self._owed():
            self._under_way = self._sender.submit(self._send_all)

    def close(self) -> None:
        """Finish what is under way."""
        self._sender.shutdown(wait=True)

    def _owed(self) -> list[_Owed]:
        """What is to be sent now, the new before the repeated."""
        now = microseconds(self._clock.now().wall)
        rows = self._ledger.query(
            "SELECT key, run, summary, details, resolved, at_us FROM pages WHERE state = 'intended' "
            "OR (state = 'not_sent' AND at_us + tries * (tries + 1) / 2 * ? <= ?) "
            "ORDER BY state = 'not_sent', at_us LIMIT ?",
            (RETRY // timedelta(microseconds=1), now, MOST_AT_ONCE),
        )
        return [
            _Owed(
                page=Page(
                    key=key, summary=summary, details=_texts(details), resolved=bool(resolved)
                ),
                run=RunId(run) if run else None,
                at_us=at_us,
            )
            for key, run, summary, details, resolved, at_us in rows
        ]

    def _send_all(self) -> None:
        """One after the other; what is owed is asked anew each time, so that a page of this moment
        does not wait behind those that a dead pager has refused all night.
        """
        tried: set[tuple[str, int]] = set()
        for _ in range(MOST_AT_ONCE):
            owed = next((one for one in self._owed() if one.name not in tried), None)
            if owed is None:
                return
            tried.add(owed.name)
            try:
                self._record(owed, self._pager.send(owed.page, deadline=DEADLINE))
            except Exception:  # one page must not keep the others from going out
                log.exception("page %s could not be sent or recorded", owed.page.key)

    def _record(self, owed: _Owed, receipts: tuple[PageReceipt, ...]) -> None:
        """Accepted is not delivered; the detail says by whom it was accepted, or by whom not.

        The record names the intent that was sent: news that came meanwhile under the same key is
        still owed.
        """
        accepted = next((receipt for receipt in receipts if receipt.accepted), None)
        tried = "; ".join(f"{one.backend}: {one.detail}" for one in receipts) or "no way is set up"
        kind = EventKind.PAGE_ACCEPTED if accepted else EventKind.PAGE_NOT_SENT
        detail = f"accepted by {accepted.backend}" if accepted else f"NOT SENT: {tried}"
        event = Event(
            kind=kind,
            actor=ENGINE.id,
            run=owed.run,
            data={
                "key": owed.page.key,
                "of_us": owed.at_us,
                "detail": detail[:1000],
                "tried": tried[:1000],
            },
        )
        self._ledger.commit(lambda transaction: transaction.append(event), Urgency.OUTCOME)


def _texts(details: str) -> dict[str, str]:
    return {str(key): str(value) for key, value in json.loads(details).items()}
