"""`reservation.delete`: takes away a reservation that this run made; nobody else's.

Called by the engine, also as the undo of `reservation.hold`. Slurm refuses while a job points to it:
then it is tried again later, and the card names the jobs.
"""

from dataclasses import dataclass

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
from actions.ownership import RESERVATION_KIND
from actions.reservation import readings
from actions.reservation.contents import named, not_ours, text_of
from actions.reservation.settings import NAME, Hands
from config.permissions import Permission

_SPEC = ActionSpec(
    name="reservation.delete",
    version=1,
    summary="Take away a reservation that this run made",
    permission=Permission.RESERVATION_HOLD,
    parameters={"name": NAME},
    output={"name": Field(type=ValueType.TEXT, help="its name")},
    clears_mark=RESERVATION_KIND,
    mark_on="name",
)
_IN_USE = "in use"
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Delete:
    """The verb."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _SPEC

    def look(self, call: Call) -> Observation:
        """Whether it is there, and ours. Raises Unreadable, Refusal."""
        readings.settled_snapshot(call, self.hands)
        name = readings.name_of(call)
        found = named(name, readings.reservations(call, self.hands))
        if found is None:
            return Observation(
                standing=Standing.OURS,
                why=f"there is no reservation {name} (any more)",
                owner=f"us:{call.run}",
                state="not there",
            )
        strange = not_ours(call, name)
        return Observation(
            standing=Standing.BLOCKED if strange else Standing.NOT_SO,
            why=strange or f"{name} holds {text_of(found)}{self._pointing(call, name)}",
            owner=f"us:{call.run}",
            state="there",
            reason=text_of(found),
        )

    def do(self, call: Call) -> Outcome:
        """Look once more, write, read back."""
        try:
            name = readings.name_of(call)
            found = named(name, readings.reservations(call, self.hands))
        except Unreadable as error:
            return Failed(error=f"nothing was written: {error}", kind=FailureKind.RETRYABLE)
        except Refusal as error:
            return Failed(error=str(error), kind=FailureKind.REFUSED)
        if found is None:
            return Done(output={"name": name})
        strange = not_ours(call, name)
        if strange:
            return Failed(error=f"nothing was written: {strange}", kind=FailureKind.REFUSED)
        return self._write(call, name)

    def _write(self, call: Call, name: str) -> Outcome:
        after = readings.written(call, self.hands, lambda cluster: cluster.delete_reservation(name))
        if isinstance(after, Failed) and _IN_USE in after.error:
            error = f"{after.error}{self._pointing(call, name)}"
            return Failed(error=error, kind=FailureKind.RETRYABLE)
        if not isinstance(after, tuple):
            return after
        if named(name, after) is not None:
            return Failed(
                error=f"{name} was still there when read back", kind=FailureKind.RETRYABLE
            )
        return Done(output={"name": name})

    def _pointing(self, call: Call, name: str) -> str:
        """Which jobs point to it, as far as the last snapshot shows."""
        try:
            snapshot = readings.settled_snapshot(call, self.hands)
        except (Unreadable, Refusal):
            return ""
        jobs = [job for job in snapshot.jobs if job.reservation == name]
        listed = ", ".join(f"{job.id} ({job.user}, {job.state})" for job in jobs[:_MOST_NAMED])
        more = f" and {len(jobs) - _MOST_NAMED} more" if len(jobs) > _MOST_NAMED else ""
        return f"; job {listed}{more} points to it" if jobs else ""
