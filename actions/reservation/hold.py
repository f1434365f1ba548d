"""`reservation.hold`: keeps nodes for one user, whatever runs on them now, until a short end.

Called by the engine, before a requeue, a canary or a return. It must never reserve a node that somebody
else holds, and never write over a reservation that is there already.
"""

from dataclasses import dataclass
from datetime import timedelta

from actions.cluster import Reservation, ReservationWish
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
from actions.ownership import RESERVATION_KIND, foreign_reservations, named_by
from actions.reservation import readings
from actions.reservation.contents import (
    differences,
    mark_of,
    named,
    obstacle,
    overlapping,
    text_of,
)
from actions.reservation.settings import NAME, NODES, Hands
from config.durations import parse_duration
from config.node_names import fold
from config.permissions import Permission

_SPEC = ActionSpec(
    name="reservation.hold",
    version=1,
    summary="Keep nodes for one user, whatever runs on them now; running jobs go on",
    permission=Permission.RESERVATION_HOLD,
    parameters={
        "name": NAME,
        "nodes": NODES,
        "user": Field(type=ValueType.TEXT, help="OS user whose jobs may start in it"),
        "length": Field(type=ValueType.DURATION, help="from now, in whole minutes"),
        "flags": Field(
            type=ValueType.TEXT,
            help="`ignore_jobs` (default); `ignore_jobs,flex` where jobs outlive its end; "
            "`maint,ignore_jobs` for nodes that are returned",
            required=False,
        ),
    },
    output={
        "name": Field(type=ValueType.TEXT, help="its name"),
        "nodes": Field(type=ValueType.NODES, help="its nodes"),
        "ends": Field(type=ValueType.TEXT, help="moment in UTC at which Slurm ends it"),
    },
    sets_mark=RESERVATION_KIND,
    mark_on="name",
    undo="reservation.delete",
)
_MINUTE = timedelta(minutes=1)
_LONGEST = timedelta(days=31)
_FLAGS = {
    "ignore_jobs": frozenset({"IGNORE_JOBS"}),
    # Measured: without it Slurm ends every job that still points to a reservation when that ends.
    "ignore_jobs,flex": frozenset({"FLEX", "IGNORE_JOBS"}),
    "maint,ignore_jobs": frozenset({"IGNORE_JOBS", "MAINT"}),
}


@dataclass(frozen=True, slots=True)
class Hold:
    """The verb."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _SPEC

    def look(self, call: Call) -> Observation:
        """Whether the reservation is there, and who is in its way. Raises Unreadable, Refusal."""
        wish = _wish(call)
        standing, why, found = self._standing(call, wish)
        return Observation(
            standing=standing,
            why=why,
            owner=f"us:{call.run}" if standing is Standing.OURS else "nobody",
            state="there" if found else "not there",
            reason=text_of(found) if found else "",
        )

    def do(self, call: Call) -> Outcome:
        """Look once more, write, read back."""
        try:
            wish = _wish(call)
            standing, why, found = self._standing(call, wish)
        except Unreadable as error:
            return Failed(error=f"nothing was written: {error}", kind=FailureKind.RETRYABLE)
        except Refusal as error:
            return Failed(error=str(error), kind=FailureKind.REFUSED)
        if standing is Standing.OURS and found is not None:
            return _done(found)
        if standing is not Standing.NOT_SO:
            kind = FailureKind.PERMANENT if found else FailureKind.REFUSED
            return Failed(error=f"nothing was written: {why}", kind=kind)
        return self._write(call, wish)

    def _standing(
        self, call: Call, wish: ReservationWish
    ) -> tuple[Standing, str, Reservation | None]:
        snapshot = readings.settled_snapshot(call, self.hands)
        ground = readings.ground(call, self.hands, wish.nodes, snapshot)
        found = named(wish.name, ground.reservations)
        if found is not None:
            return *_already(call, wish, found), found
        why = obstacle(wish.nodes, call.now + wish.length, ground, call)
        if why:
            return Standing.BLOCKED, why, None
        lost = mark_of(call, wish.name)
        again = ", which this run made before and which is gone" if lost and lost.text else ""
        what = f"{fold(wish.nodes)} can be kept for {wish.user} as {wish.name}{again}"
        return Standing.NOT_SO, what, None

    def _write(self, call: Call, wish: ReservationWish) -> Outcome:
        after = readings.written(call, self.hands, lambda cluster: cluster.create_reservation(wish))
        if not isinstance(after, tuple):
            return after
        found = named(wish.name, after)
        if found is None:
            return Failed(
                error=f"{wish.name} was gone when read back: the controller forgot it, or somebody "
                "deleted it at once",
                kind=FailureKind.RETRYABLE,
            )
        unlike = differences(found, wish, call.now)
        if unlike:
            return Failed(
                error=f"{wish.name} was read back with other contents: {unlike}",
                kind=FailureKind.PERMANENT,
                restore=_delete_command(wish.name),
            )
        # `maint` lets reservations overlap: one that was made at the same moment stays.
        theirs = overlapping(
            wish.nodes, call.now + wish.length, foreign_reservations(_others(after, wish), call)
        )
        return _done(found) if theirs is None else self._take_back(call, wish, theirs)

    def _take_back(self, call: Call, wish: ReservationWish, theirs: Reservation) -> Failed:
        """Our own write must not stand beside a reservation that came at the same moment."""
        why = f"reservation {theirs.name} was made on the same nodes at the same moment"
        after = readings.written(
            call, self.hands, lambda cluster: cluster.delete_reservation(wish.name)
        )
        if isinstance(after, tuple) and named(wish.name, after) is None:
            return Failed(error=f"{why}: ours was taken back", kind=FailureKind.PERMANENT)
        return Failed(
            error=f"{why}, and ours could not be taken back",
            kind=FailureKind.PERMANENT,
            restore=_delete_command(wish.name),
        )


def _already(call: Call, wish: ReservationWish, found: Reservation) -> tuple[Standing, str]:
    """What a reservation of that name means."""
    mark = mark_of(call, wish.name)
    if mark is None or mark.run != call.run:
        return (
            Standing.BLOCKED,
            f"a reservation {wish.name} is there already, and the ledger does not know that this run "
            "made it",
        )
    unlike = differences(found, wish, call.now)
    if unlike:
        return Standing.BLOCKED, f"{wish.name} is there already with other contents: {unlike}"
    return Standing.OURS, f"{wish.name} holds {text_of(found)} already"


def _others(
    reservations: tuple[Reservation, ...], wish: ReservationWish
) -> tuple[Reservation, ...]:
    return tuple(found for found in reservations if found.name != wish.name)


def _done(found: Reservation) -> Done:
    ends = f"{found.ends_at:%Y-%m-%dT%H:%MZ}" if found.ends_at else ""
    return Done(
        output={"name": found.name, "nodes": list(found.nodes), "ends": ends},
        mark_text=text_of(found),
    )


def _delete_command(name: str) -> str:
    return f"scontrol delete ReservationName={name}"


def _wish(call: Call) -> ReservationWish:
    """What is asked for. Raises Refusal where it is not one of ours."""
    name, given = readings.name_of(call), call.arguments
    if named_by(name, call.instance) != call.run:
        raise Refusal(
            f"{name[:60]!r} is no name of a reservation of {call.run}: a look of the run makes it"
        )
    user, flags = given.get("user"), _FLAGS.get(str(given.get("flags") or "ignore_jobs"))
    if not isinstance(user, str) or not user or flags is None:
        raise Refusal(f"a reservation is for one user, with flags {' or '.join(_FLAGS)}")
    try:
        length = parse_duration(str(given.get("length")))
    except ValueError as error:
        raise Refusal(f"length: {error}") from error
    if length % _MINUTE or not _MINUTE <= length <= _LONGEST:
        raise Refusal("a reservation lasts whole minutes, at most 31 days")
    return ReservationWish(
        name=name,
        nodes=readings.nodes_of(given.get("nodes")),
        user=user,
        length=length,
        flags=flags,
    )
