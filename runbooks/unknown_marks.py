"""Marks in the cluster that carry this instance's name and that its ledger does not know (hands 2). Pure.

After a restore of the ledger from an older copy, or of another bot that was given its name: nobody can
tell, so they are listed at `list marks`, `status` and `doctor`, and nothing touches them.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from actions.cluster import Snapshot
from actions.ownership import named_by
from actions.reasons import classify
from config.ids import InstanceId, RunId


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownMark:
    """One of them."""

    kind: str
    name: str
    """Of the node or the reservation."""
    run: RunId
    """The run whose name it carries."""


def unknown_marks(
    snapshot: Snapshot, instance: InstanceId, known: Collection[tuple[str, str]]
) -> Iterator[UnknownMark]:
    """Those of one cluster; `known` are the kinds and names of the ledger's marks there."""
    for reservation in snapshot.reservations:
        run = named_by(reservation.name, instance)
        if run is not None and ("reservation", reservation.name) not in known:
            yield UnknownMark(kind="reservation", name=reservation.name, run=run)
    for node in snapshot.nodes.values():
        mark = classify(node.reason).mark if node.draining and node.reason else None
        if mark is None or mark.instance != instance or ("drain", node.name) in known:
            continue
        yield UnknownMark(kind="drain", name=node.name, run=mark.run)
