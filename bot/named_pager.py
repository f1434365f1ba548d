"""Pages in the words of people: the ledger knows them by opaque ids, a phone at night should not."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from actions.hands import Page, Pager, PageReceipt


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPager:
    """A pager that puts names for ids right before a page leaves."""

    pager: Pager
    named: Callable[[str], str]

    def send(self, page: Page, *, deadline: timedelta) -> tuple[PageReceipt, ...]:
        """Send it, with names. The key stays as it is."""
        details = {key: self.named(value) for key, value in page.details.items()}
        said = replace(page, summary=self.named(page.summary), details=details)
        return self.pager.send(said, deadline=deadline)
