"""People stand in the ledger under opaque ids; what they read has their names."""

from datetime import timedelta

from actions.hands import Page, PageReceipt
from bot.named_pager import NamedPager


class Pager:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.sent: list[Page] = []

    def send(self, page: Page, *, deadline: timedelta) -> tuple[PageReceipt, ...]:
        self.sent.append(page)
        return ()


def test_a_page_leaves_with_the_names_of_people_and_its_own_key() -> None:
    pager = Pager()
    page = Page(
        key="k/p-0123456789", summary="p-0123456789 said no", details={"by": "p-0123456789"}
    )
    NamedPager(pager=pager, named=lambda text: text.replace("p-0123456789", "ann")).send(
        page, deadline=timedelta(seconds=1)
    )
    (sent,) = pager.sent
    assert (sent.key, sent.summary) == ("k/p-0123456789", "ann said no")
    assert sent.details == {"by": "ann"}
