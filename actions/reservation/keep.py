"""`reservation.keep` gives a reservation of this bot other nodes; `reservation.restore` gives the old back.

Called by the engine: a spare that a reservation holds is let go by keeping the others. Of a reservation
that another run of this bot made, only the list of nodes is changed. It must never change a reservation
that the ledger does not know, or whose nodes are not as they were planned to be.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from actions.cluster import Reservation
from actions.contract import (
    ActionSpec,
    Call,
    Done,
    Failed,
    FailureKind,
    Field,
    Observation,
    Outcome,
    Refusal,
    Standing,
    Unreadable,
    ValueType,
)
from actions.reservation import readings
from actions.reservation.contents import mark_of, named, obstacle
from actions.reservation.settings import NAME, NODES, Hands
from config.node_names import NodeName, fold
from config.permissions import Permission

_KEEP = ActionSpec(
    name="reservation.keep",
    version=1,
    summary="Give a reservation of this bot exactly these nodes",
    permission=Permission.RESERVATION_HOLD,
    parameters={
        "name": replace(NAME, help="a reservation that this bot made"),
        "nodes": NODES,
        "before": Field(
            type=ValueType.NODES,
            help="the nodes that it has now: compared before the write, and given back by the undo",
            required=False,
        ),
    },
    output={
        "nodes": Field(type=ValueType.NODES, help="its nodes now"),
        "before": Field(type=ValueType.NODES, help="its nodes before"),
    },
    undo="reservation.restore",
)
_RESTORE = replace(
    _KEEP,
    name="reservation.restore",
    summary="Give a reservation of this bot the nodes back that it had before reservation.keep",
    parameters={**_KEEP.parameters, "before": replace(_KEEP.parameters["before"], required=True)},
    undo=None,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """From these nodes to those."""

    name: str
    wanted: frozenset[NodeName]
    expected: frozenset[NodeName] | None
    """None where anything may stand there now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    standing: Standing
    why: str
    found: Reservation | None = None


@dataclass(frozen=True, slots=True)
class SetNodes:
    """Both verbs: they differ in which list is wanted."""

    hands: Hands
    spec: ActionSpec
    change: Callable[[Call], _Change]

    def look(self, call: Call) -> Observation:
        """What it holds, and who is in the way. Raises Unreadable, Refusal."""
        seen = self._seen(call, self.change(call))
        held = fold(seen.found.nodes) if seen.found else ""
        return Observation(
            standing=seen.standing,
            why=seen.why,
            owner=f"us:{call.run}",
            state="there" if seen.found else "not there",
            reason=held,
        )

    def do(self, call: Call) -> Outcome:
        """Look once more, write, read back."""
        try:
            change = self.change(call)
            seen = self._seen(call, change)
        except Unreadable as error:
            return Failed(error=f"nothing was written: {error}", kind=FailureKind.RETRYABLE)
        except Refusal as error:
            return Failed(error=str(error), kind=FailureKind.REFUSED)
        if seen.found is None or seen.standing is Standing.BLOCKED:
            return Failed(error=f"nothing was written: {seen.why}", kind=FailureKind.REFUSED)
        if seen.standing is Standing.OURS:
            return _done(seen.found, seen.found)
        return self._write(call, change, seen.found)

    def _seen(self, call: Call, change: _Change) -> _Seen:
        snapshot = readings.settled_snapshot(call, self.hands)
        listed = readings.reservations(call, self.hands)
        found = named(change.name, listed)
        if found is None:
            return _Seen(
                standing=Standing.BLOCKED,
                why=f"there is no reservation {change.name} (any more): the controller forgot it, it "
                "ended, or somebody deleted it",
            )
        if mark_of(call, change.name) is None:
            why = f"the ledger does not know reservation {change.name}: it is not ours"
            return _Seen(standing=Standing.BLOCKED, why=why, found=found)
        held = frozenset(found.nodes)
        if held == change.wanted:
            why = f"{change.name} has exactly {fold(change.wanted)}"
            return _Seen(standing=Standing.OURS, why=why, found=found)
        if change.expected is not None and held != change.expected:
            why = f"{change.name} has {fold(held)}, not {fold(change.expected)} as planned"
            return _Seen(standing=Standing.BLOCKED, why=why, found=found)
        added = sorted(change.wanted - held)
        ground = readings.ground(call, self.hands, added, snapshot)
        why = obstacle(added, found.ends_at or call.now, ground, call)
        if why:
            return _Seen(standing=Standing.BLOCKED, why=why, found=found)
        what = f"{change.name} has {fold(held)} and gets {fold(change.wanted)}"
        return _Seen(standing=Standing.NOT_SO, why=what, found=found)

    def _write(self, call: Call, change: _Change, before: Reservation) -> Outcome:
        nodes = sorted(change.wanted)
        after = readings.written(
            call, self.hands, lambda cluster: cluster.set_reservation_nodes(change.name, nodes)
        )
        if not isinstance(after, tuple):
            return after
        found = named(change.name, after)
        if found is None or frozenset(found.nodes) != change.wanted:
            held = fold(found.nodes) if found else "no node: it is gone"
            return Failed(
                error=f"{change.name} has {held} when read back, not {fold(nodes)}",
                kind=FailureKind.PERMANENT,
                restore=f"scontrol update ReservationName={change.name} Nodes={fold(before.nodes)}",
            )
        return _done(found, before)


def keep(hands: Hands) -> SetNodes:
    """`reservation.keep`."""
    return SetNodes(hands, _KEEP, lambda call: _change(call, "nodes", "before"))


def restore(hands: Hands) -> SetNodes:
    """`reservation.restore`."""
    return SetNodes(hands, _RESTORE, lambda call: _change(call, "before", "nodes"))


def _change(call: Call, to: str, since: str) -> _Change:
    given = call.arguments.get(since)
    return _Change(
        name=readings.name_of(call),
        wanted=frozenset(readings.nodes_of(call.arguments.get(to))),
        expected=frozenset(readings.nodes_of(given)) if given else None,
    )


def _done(after: Reservation, before: Reservation) -> Done:
    return Done(output={"nodes": list(after.nodes), "before": list(before.nodes)})
