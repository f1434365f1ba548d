"""Whether a reservation is the one that was asked for, and what it must not overlap. Pure.

Used by the verbs of this area.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from actions.cluster import Node, Reservation, ReservationWish
from actions.contract import Call, Mark
from actions.ownership import (
    RESERVATION_KIND,
    UNKNOWN_BOOT,
    Holder,
    Scene,
    foreign_reservations,
    holding,
)
from config.node_names import NodeName, fold

_ANY = frozenset({"FLEX", "IGNORE_JOBS", "MAINT"})
"""Flags that change whom a reservation lets in; the others follow from how it was asked for."""
_CLOCKS = timedelta(minutes=5)
"""What begins "now" begins after the call was made, by the controller's own clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a reservation over some nodes is judged from."""

    nodes: Mapping[NodeName, Node]
    """The wanted ones, as far as the controller knows them."""
    reservations: tuple[Reservation, ...]
    hands_off: Mapping[NodeName, str]
    """Why nobody may touch a node by order of the site; nodes without an order are left out."""


def named(name: str, reservations: Iterable[Reservation]) -> Reservation | None:
    """The one of that name."""
    return next((found for found in reservations if found.name == name), None)


def mark_of(call: Call, name: str) -> Mark | None:
    """The ledger's mark that proves that a reservation of that name is ours."""
    for mark in call.marks:
        if (mark.kind, mark.cluster, mark.node) == (RESERVATION_KIND, call.cluster, name):
            return mark
    return None


def differences(found: Reservation, wish: ReservationWish, now: datetime) -> str:
    """What is different from what is wanted; empty if nothing is."""
    unlike = []
    if frozenset(found.nodes) != frozenset(wish.nodes):
        unlike.append(f"its nodes are {fold(found.nodes) or 'none'}, not {fold(wish.nodes)}")
    if found.users != (wish.user,) or found.accounts:
        let_in = ", ".join((*found.users, *found.accounts)) or "nobody"
        unlike.append(f"it is for {let_in}, not for {wish.user}")
    if found.flags & _ANY != wish.flags:
        unlike.append(f"its flags are {_words(found.flags & _ANY)}, not {_words(wish.flags)}")
    if found.starts_at is not None and found.starts_at > now + _CLOCKS:
        unlike.append(f"it only begins at {found.starts_at:%Y-%m-%d %H:%M} UTC")
    if found.ends_at is not None and found.ends_at <= now:
        unlike.append(f"it ended at {found.ends_at:%Y-%m-%d %H:%M} UTC")
    return "; ".join(unlike)


def not_ours(call: Call, name: str) -> str:
    """Why the ledger does not let this run take it away or change it; empty if it does."""
    mark = mark_of(call, name)
    if mark is None:
        return f"the ledger does not know reservation {name}: it is not ours"
    if mark.run != call.run:
        return f"reservation {name} belongs to {mark.run}: only that run takes it away"
    return ""


def _words(flags: frozenset[str]) -> str:
    return ",".join(sorted(flags)).lower() or "none"


def text_of(found: Reservation) -> str:
    """What stands there, in one line; the mark keeps it."""
    until = f" until {found.ends_at:%Y-%m-%d %H:%M} UTC" if found.ends_at else ""
    return f"{fold(found.nodes)} for {', '.join(found.users)}{until}"[:200]


def obstacle(wanted: Iterable[NodeName], until: datetime, ground: Ground, call: Call) -> str:
    """Why one of these nodes may not be reserved until then; empty if all may."""
    foreign = foreign_reservations(ground.reservations, call)
    for name in wanted:
        node = ground.nodes.get(name)
        if node is None:
            return f"the controller of {call.cluster} knows no node {name}"
        if node.unknown_flags:
            return f"{name} is {node.state}: not a state this version acts on"
        scene = Scene(
            node=node,
            reservations=ground.reservations,
            boot_id=UNKNOWN_BOOT,
            hands_off=ground.hands_off.get(name, ""),
        )
        found = holding(scene, call)
        if found.holder is Holder.OTHER:
            return found.why
        later = overlapping((name,), until, foreign)
        if later is not None:
            return f"{name} is in reservation {later.name} {_from(later)}, not by this run"
    return ""


def overlapping(
    nodes: Iterable[NodeName], until: datetime, reservations: Iterable[Reservation]
) -> Reservation | None:
    """One that has any of these nodes before that moment; those that are over are not listed."""
    wanted = frozenset(nodes)
    for found in reservations:
        begins = found.starts_at is None or found.starts_at < until
        if begins and wanted & frozenset(found.nodes):
            return found
    return None


def _from(found: Reservation) -> str:
    return f"from {found.starts_at:%Y-%m-%d %H:%M} UTC" if found.starts_at else "now"
