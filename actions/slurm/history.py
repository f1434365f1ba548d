"""Who gave a node which Reason, as slurmdbd remembers it: a `ReasonHistory` over `sacctmgr`.

Constructed by `actions.catalogue`; asked by drain and return after their write, to find what that
write replaced. It never changes anything and never asks slurmctld.

What accounting cannot tell (measured on 22.05.8):

* It keys a node's events by whole seconds. Of two drains within one second it keeps the first
  writer beside the last text: that somebody wrote is seen, what they wrote only slurmctld.log has.
* A Reason that is edited without a state leaves no event at all.
* Characters that are not ASCII arrive as `?`.
* An event arrives a second or two after the write, later under load, so it is waited for.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

from actions.contract import Unreadable
from actions.hands import WrittenReason
from actions.shell import Command
from actions.slurm.fields import UnknownForm
from actions.slurm.fields import moment as time_in
from actions.slurm.tools import Runs, SlurmSettings, words_of_controller
from config.clock import Clock
from config.node_names import NodeName

_LATE = timedelta(seconds=15)
"""An event that has not arrived by then will not be waited for."""
_PAUSE = timedelta(milliseconds=500)
_LIMIT = timedelta(seconds=10)
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
# The Reason stands last, because it may hold the separator and line ends.
_ROW = re.compile(
    rf"^(?P<node>[^|\n]+)\|(?P<user>[^|\n]*)\|(?P<start>{_TIME})\|(?P<end>{_TIME}|Unknown)\|",
    re.ASCII | re.MULTILINE,
)
_UID = re.compile(r"\(\d+\)\Z", re.ASCII)


class AccountingHistory:
    """`actions.contract.ReasonHistory` over `sacctmgr show event`."""

    def __init__(
        self,
        settings: SlurmSettings,
        runner: Runs,
        clock: Clock,
        pause: Callable[[timedelta], None],
    ) -> None:
        """`pause` waits in the calling worker thread for the event to arrive."""
        self._settings = settings
        self._runner = runner
        self._clock = clock
        self._pause = pause

    def written_since(self, node: NodeName, moment: datetime) -> Sequence[WrittenReason]:
        """Reasons given at `moment` or later, the oldest first.

        Asked after a write, which begins or ends an event itself: until one is there, accounting
        has not heard of that write. Raises Unreadable when it does not hear of it in time.
        """
        since = moment.replace(microsecond=0)
        began = self._clock.now().monotonic
        while True:
            rows = tuple(_rows(self._ask(node, since), node))
            if any(max(row.at, ended or row.at) >= since for row, ended in rows):
                return [row for row, _ended in rows if row.at >= since]
            if self._clock.now().monotonic - began > _LATE:
                raise Unreadable(f"accounting has not heard of the write to {node} within {_LATE}")
            self._pause(_PAUSE)

    def _ask(self, node: NodeName, since: datetime) -> str:
        done = self._runner.run(
            Command(
                argv=(
                    *("sacctmgr", "--readonly", "--noheader", "--parsable2", "show", "event"),
                    f"clusters={self._settings.cluster}",
                    f"nodes={node}",
                    f"start={since:%Y-%m-%dT%H:%M:%S}",
                    "format=NodeName,User,TimeStart,TimeEnd,Reason",
                ),
                time_limit=_LIMIT,
                environment=self._settings.environment,
            )
        )
        if not done.ok or done.truncated:
            raise Unreadable(f"accounting: {done.lost or words_of_controller(done)}")
        return done.stdout


def _rows(answer: str, node: NodeName) -> Iterator[tuple[WrittenReason, datetime | None]]:
    """Events of this node, by their start, each with its end. Raises Unreadable."""
    found = list(_ROW.finditer(answer))
    if answer[: found[0].start() if found else None].strip():
        raise Unreadable(f"accounting answers in a form not known: {answer[:80]!r}")
    ends = [*(match.start() for match in found), len(answer)][1:]
    rows = [_row(match, answer[match.end() : end]) for match, end in zip(found, ends, strict=True)]
    names = {match["node"] for match in found} - {node}
    if names:
        raise Unreadable(f"accounting answers about {sorted(names)[0]!r}, asked about {node}")
    yield from sorted(rows, key=lambda row: row[0].at)


def _row(match: re.Match[str], reason: str) -> tuple[WrittenReason, datetime | None]:
    try:
        start, end = time_in(match["start"]), time_in(match["end"])
    except UnknownForm as error:
        raise Unreadable(f"accounting: {error}") from error
    if start is None:
        raise Unreadable(f"accounting: an event of {match['node']} without a start")
    by = _UID.sub("", match["user"])
    return WrittenReason(reason=reason.strip("\n"), by=by, at=start), end
