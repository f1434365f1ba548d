"""Rules of slurmctld for reservations: overlap, who may use one, its end, and when it may be deleted.

Called by `write_rules`, `slurm_plugs` and `due_rules`. The words of refusals are Slurm's own.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from actions.contract import Rejected
from actions.simulated import queue_rules, saving
from actions.simulated.state import (
    Due,
    DueKind,
    JobRecord,
    ReservationRecord,
    State,
)
from config.node_names import NodeName

_INVALID = "Requested reservation is invalid"
DELETED = "ReservationDeleted"
_BESIDE_OTHERS = frozenset({"MAINT", "OVERLAP"})
"""Flags of a reservation that may lie over another one, and another over it."""


def create(state: State, wanted: ReservationRecord) -> None:
    """`scontrol create reservation`, from now on."""
    if not wanted.users:
        raise Rejected("Either Users/Groups and/or Accounts must be specified.")
    _may_hold(state, wanted, "Error creating the reservation", tuple(state.reservations.values()))
    if wanted.name in state.reservations:  # measured: what overlaps is told first
        raise Rejected("Error creating the reservation: Duplicate reservation name")
    saving.remember_reservation(state, wanted.name)
    _put(state, wanted)
    state.later(wanted.ends_at, Due(kind=DueKind.RESERVATION_EDGE))


def set_nodes(state: State, name: str, nodes: tuple[NodeName, ...]) -> None:
    """`scontrol update ReservationName=… Nodes=…`: exactly these."""
    found = state.reservations.get(name)
    if found is None:
        raise Rejected(f"Error updating the reservation: {_INVALID}")
    wanted = replace(found, nodes=nodes)
    others = tuple(each for each in state.reservations.values() if each is not found)
    _may_hold(state, wanted, "Error updating the reservation", others)
    saving.remember_reservation(state, name)
    _put(state, wanted)


def delete(state: State, name: str) -> None:
    """`scontrol delete`: refused while a job points to it, whatever the job waits for (hands 3)."""
    if name not in state.reservations:
        raise Rejected(f"delete_reservation ReservationName={name}: {_INVALID}")
    if any(job.ended_at is None and job.reservation == name for job in state.jobs.values()):
        raise Rejected(
            f"delete_reservation ReservationName={name}: Requested reservation is in use"
        )
    saving.remember_reservation(state, name)
    remove(state, name)


def remove(state: State, name: str) -> None:
    """It is gone: what waited for it is held, as Slurm does it."""
    state.reservations.pop(name, None)
    state.unsettled = True
    for job in state.jobs.values():
        if job.reservation == name and job.ended_at is None:
            job.reservation = ""
            if job.state == "PENDING" and not job.held:
                job.held = DELETED


def edge(state: State) -> None:
    """One may have ended: jobs that still point to it are ended with it, by TIMEOUT (measured).

    Where it has FLEX they go on, and point nowhere (measured).
    """
    for reservation in tuple(state.reservations.values()):
        if reservation.ends_at > state.now:
            continue
        for job in tuple(state.jobs.values()):
            if job.reservation == reservation.name and job.state in {"RUNNING", "SUSPENDED"}:
                job.reservation = ""
                if "FLEX" in reservation.flags:
                    continue
                job.state_reason = "TimeLimit"
                queue_rules.leave(
                    state, job, "TIMEOUT", f"reservation {reservation.name} has ended"
                )
        state.happened("reservation ended", reservation.name, "its end has come")
        remove(state, reservation.name)
    state.unsettled = True


def drop_lost(state: State) -> None:
    """A started slurmctld takes reservations that it does not know from the jobs that name them."""
    for job in state.jobs.values():
        if job.reservation and job.reservation not in state.reservations:
            job.reservation = ""


def may_use(state: State, job: JobRecord, name: str) -> None:
    """Whether the job may be put into that reservation. Raises Rejected."""
    found = state.reservations.get(name)
    if found is None:
        raise Rejected(f"{_INVALID} for job {job.id}")
    if job.user not in found.users:
        raise Rejected(f"Access denied to requested reservation for job {job.id}")


def length(minutes: str) -> timedelta:
    """A duration as a write carries it. Raises ValueError."""
    return timedelta(minutes=int(minutes))


def _put(state: State, wanted: ReservationRecord) -> None:
    state.reservations[wanted.name] = wanted
    state.unsettled = True


def _may_hold(
    state: State, wanted: ReservationRecord, doing: str, others: Iterable[ReservationRecord]
) -> None:
    """Whether nothing stands against it. Raises Rejected."""
    if not wanted.nodes or any(name not in state.nodes for name in wanted.nodes):
        raise Rejected(f"{doing}: Invalid node name specified")
    alone = not wanted.flags & _BESIDE_OTHERS
    if alone and any(_overlap(wanted, other) for other in others):
        raise Rejected(f"{doing}: Requested reservation overlaps with another reservation")
    if "IGNORE_JOBS" not in wanted.flags and _busy(state, wanted, wanted.nodes):
        raise Rejected(f"{doing}: Requested nodes are busy")


def _overlap(wanted: ReservationRecord, other: ReservationRecord) -> bool:
    """Whether both hold a node at some time, and neither may lie over another."""
    return (
        not other.flags & _BESIDE_OTHERS
        and wanted.starts_at < other.ends_at
        and other.starts_at < wanted.ends_at
        and not set(wanted.nodes).isdisjoint(other.nodes)
    )


def _busy(state: State, wanted: ReservationRecord, nodes: Iterable[NodeName]) -> bool:
    """Whether a job that is not in the reservation has work on its nodes."""
    return any(
        state.jobs[number].reservation != wanted.name
        for name in nodes
        for number in state.nodes[name].jobs
    )
