"""The chain of pagers: back ends in order, one deadline, one receipt for each.

Constructed by `actions.catalogue`; called by the worker, the store's alarm and `page.send`. It must
never raise and never pass its deadline, because it is what remains when the rest has failed.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import assert_never

from actions.hands import Page, PageReceipt
from actions.page.backends import Accepted, Backend, MaybeAccepted, NotAccepted
from actions.page.messages import LONGEST_VALUE, plain
from config.clock import Clock

MOST_STUCK = 4
"""So many calls of one back end may hang behind us before it is not asked any more."""


@dataclass(slots=True)
class _Attempt:
    """One call of one back end, in a thread of its own."""

    outcome: Accepted | NotAccepted | MaybeAccepted | None = None
    ended: threading.Event = field(default_factory=threading.Event)


class PagerChain:
    """`Pager` over these back ends."""

    def __init__(self, backends: Sequence[Backend], clock: Clock) -> None:
        """At least one back end, in the order in which they are tried."""
        if not backends:
            raise ValueError("no way to page anybody is configured: add one under `pages`")
        self._backends = tuple(backends)
        self._clock = clock
        self._hanging: dict[int, list[_Attempt]] = {index: [] for index in range(len(backends))}
        self._lock = threading.Lock()

    def send(self, page: Page, *, deadline: timedelta) -> tuple[PageReceipt, ...]:
        """Try back ends in order until one accepts; each gets its share of the time that is left."""
        ends = self._clock.now().monotonic + deadline
        receipts: list[PageReceipt] = []
        for index, backend in enumerate(self._backends):
            left = ends - self._clock.now().monotonic
            share = left / (len(self._backends) - index)
            receipts.append(self._receipt(index, backend, page, share))
            if receipts[-1].accepted:
                break
        return tuple(receipts)

    def _receipt(self, index: int, backend: Backend, page: Page, share: timedelta) -> PageReceipt:
        """What became of the page at one back end."""
        outcome = (
            self._ask(index, backend, page, share)
            if share > timedelta(0)
            else NotAccepted("not tried: no time was left")
        )
        match outcome:
            case Accepted(detail=detail):
                return PageReceipt(backend=backend.name, accepted=True, detail=detail)
            case NotAccepted() | MaybeAccepted():
                return PageReceipt(
                    backend=backend.name,
                    accepted=False,
                    detail=plain(str(outcome), LONGEST_VALUE),
                    unknown=isinstance(outcome, MaybeAccepted),
                )
            case _:
                assert_never(outcome)

    def _ask(
        self, index: int, backend: Backend, page: Page, share: timedelta
    ) -> Accepted | NotAccepted | MaybeAccepted:
        """Call it in a thread, because a resolver or a dripping answer obeys no time-out."""
        attempt = _Attempt()
        with self._lock:
            hanging = [each for each in self._hanging[index] if not each.ended.is_set()]
            self._hanging[index] = hanging
            if len(hanging) >= MOST_STUCK:
                return NotAccepted(f"not tried: {len(hanging)} earlier calls have not come back")
            hanging.append(attempt)
        threading.Thread(
            target=_call, args=(attempt, backend, page, share), name="page", daemon=True
        ).start()
        attempt.ended.wait(share / timedelta(seconds=1))
        return attempt.outcome or MaybeAccepted(
            f"no answer within {share / timedelta(seconds=1):.1f} s"
        )


def _call(attempt: _Attempt, backend: Backend, page: Page, share: timedelta) -> None:
    """The body of the thread: every end of the call is an outcome."""
    try:
        attempt.outcome = backend.page(page, share)
    except (NotAccepted, MaybeAccepted) as told:
        attempt.outcome = told
    except Exception as error:  # noqa: BLE001  whatever breaks here, the next back end must be tried
        # Only the class is told: the text of an unknown error may hold anything.
        attempt.outcome = MaybeAccepted(f"it failed in an unforeseen way ({type(error).__name__})")
    finally:
        attempt.ended.set()
