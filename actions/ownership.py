"""Who holds a node, from its flags, its Reason, its reservations and our ledger's marks (hands 2).

Pure; the one place where a node is called ours or somebody else's. Used by `actions.node` and
`actions.service`. The proof of ownership is the ledger's mark; a Reason in our form without one is foreign,
except the very text that this run writes: it may have been written just before a crash.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from actions.cluster import Node, NodeBase, Reservation
from actions.contract import Call, Mark
from actions.reasons import ReasonKind, ReasonReading, classify
from config.ids import InstanceId, RunId
from config.node_names import NodeName

MARK_KIND = "drain"
RESERVATION_KIND = "reservation"
UNKNOWN_BOOT = "unknown"
_SHOWN = 120
_LABEL = re.compile(r"[a-z0-9_]{1,32}", re.ASCII)
_RESERVATION = re.compile(r"nw-(run-\d+)-([a-z0-9_]{1,32})-([0-9a-zA-Z]+)", re.ASCII)


class Holder(StrEnum):
    """Whose node it is."""

    NOBODY = "nobody"
    US = "us"
    SLURM = "slurm"
    """Slurm took it out by itself: no person's, and not ours."""
    OTHER = "other"
    """A person, another tool, another instance of this bot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """Whose node it is, and how that is known."""

    holder: Holder
    owner: str
    """As the plan's hash holds it: `us:<run>`, `nobody`, `slurm`, or the writer's name."""
    why: str
    mark: Mark | None = None
    """The ledger's mark that proves that it is ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What ownership is judged from."""

    node: Node
    reservations: tuple[Reservation, ...]
    boot_id: str
    """`unknown` where the host could not be asked."""
    hands_off: str
    """Why nobody may touch it by order of the site; empty if one may."""


def holding(scene: Scene, call: Call) -> Holding:
    """Whose node it is."""
    node = scene.node
    if scene.hands_off:
        return _other("hands-off", f"{node.name} is not to be touched: {scene.hands_off}")
    named = reservation_of(node.name, foreign_reservations(scene.reservations, call))
    kept = reservation_of(node.name, scene.reservations)
    if named or (not kept and node.flags & {"MAINTENANCE", "RESERVED"}):
        held = f"reservation {named}" if named else "a reservation or maintenance"
        return _other(named or "maintenance", f"{node.name} is held by {held}, not by this bot")
    reading = classify(node.reason)
    if "FAIL" in node.flags:
        return _other(_writer(node), f"{node.name} was set FAIL by {_writer(node)}: {_text(node)}")
    if node.draining:
        return _drained(scene, call, reading)
    if node.base is NodeBase.DOWN and _drain_is_gone(node, call, reading):
        why = f"{node.name} is {node.state}: Slurm took our drain away with {_text(node)}"
        return Holding(holder=Holder.NOBODY, owner="nobody", why=why)
    if node.base is NodeBase.DOWN and reading.kind in {ReasonKind.FOREIGN, ReasonKind.MARK}:
        return _other(_writer(node), f"{node.name} is DOWN, by {_writer(node)}: {_text(node)}")
    return Holding(holder=Holder.NOBODY, owner="nobody", why=f"{node.name} is {node.state}")


def reservation_of(node: NodeName, reservations: Iterable[Reservation]) -> str:
    """Name of an active reservation that holds the node; empty if none does."""
    return next((found.name for found in reservations if found.active and node in found.nodes), "")


def foreign_reservations(
    reservations: Iterable[Reservation], call: Call
) -> tuple[Reservation, ...]:
    """Those that this very run did not make; the ledger's mark is the proof, not the name."""
    own = {
        mark.node
        for mark in call.marks
        if (mark.kind, mark.cluster, mark.run) == (RESERVATION_KIND, call.cluster, call.run)
    }
    return tuple(found for found in reservations if found.name not in own)


def reservation_name(call: Call, label: str) -> str:
    """The name of a reservation that this run makes; one run makes at most one of each label."""
    if not _LABEL.fullmatch(label):
        raise ValueError(f"{label!r} is no label: at most 32 of a-z, 0-9 and `_`")
    return f"nw-{call.run}-{label}-{call.instance}"


def named_by(name: str, instance: InstanceId) -> RunId | None:
    """The run whose name a reservation of this instance carries; a hint, the ledger is the proof."""
    found = _RESERVATION.fullmatch(name)
    return RunId(found[1]) if found and found[3] == instance else None


def our_marks(call: Call, node: NodeName) -> tuple[Mark, ...]:
    """The ledger's open drains of this very node, the newest first."""
    return tuple(
        sorted(
            (
                mark
                for mark in call.marks
                if (mark.kind, mark.cluster, mark.node) == (MARK_KIND, call.cluster, node)
            ),
            key=lambda mark: mark.at,
            reverse=True,
        )
    )


def same_boot(mark: Mark, boot_id: str) -> bool:
    """Whether nothing speaks against the boot being the one of the mark."""
    return boot_id == mark.boot_id or UNKNOWN_BOOT in {boot_id, mark.boot_id} or not mark.boot_id


def _drained(scene: Scene, call: Call, reading: ReasonReading) -> Holding:
    node, marks = scene.node, our_marks(call, scene.node.name)
    if reading.kind is ReasonKind.MARK and reading.mark is not None:
        return _marked(node, call, reading, marks)
    if reading.kind is ReasonKind.FOREIGN or not node.reason.strip():
        return _taken_over(node, marks)
    for mark in marks:
        if call.intended_at is not None and not mark.text and mark.run == call.run:
            continue  # the open intent of this very run: nothing shows that it wrote
        if same_boot(mark, scene.boot_id):
            why = (
                f"{node.name} is drained by {mark.run}; Slurm wrote over the Reason: {_text(node)}"
            )
            return Holding(holder=Holder.US, owner=f"us:{mark.run}", why=why, mark=mark)
    why = f"{node.name} was drained by Slurm itself: {_text(node)}"
    if marks and marks[0].text:
        why += f"; our drain of {marks[0].run} was made in another boot and proves nothing now"
    return Holding(holder=Holder.SLURM, owner="slurm", why=why)


def _drain_is_gone(node: Node, call: Call, reading: ReasonReading) -> bool:
    """Whether it carries the text of an open drain of ours, without the flag: a reboot that Slurm gives
    up after ResumeTimeout leaves it so (measured).
    """
    found = reading.mark
    if found is None or found.instance != call.instance:
        return False
    return any(mark.run == found.run for mark in our_marks(call, node.name))


def _marked(node: Node, call: Call, reading: ReasonReading, marks: tuple[Mark, ...]) -> Holding:
    found = reading.mark
    if found is None or found.instance != call.instance:
        by = found.instance if found else ""
        return _other(f"instance {by}", f"{node.name} is drained by another bot: {_text(node)}")
    for mark in marks:
        if mark.run == found.run:
            why = f"{node.name} is drained by {mark.run} already"
            return Holding(holder=Holder.US, owner=f"us:{mark.run}", why=why, mark=mark)
    if found.run == call.run:
        why = f"{node.name} carries the mark of this run already"
        return Holding(holder=Holder.US, owner=f"us:{call.run}", why=why)
    return _other(
        f"lost mark {found.run}",
        f"{node.name} carries a mark of this bot that its ledger does not know: {_text(node)}",
    )


def _taken_over(node: Node, marks: tuple[Mark, ...]) -> Holding:
    by = _writer(node)
    why = f"{node.name} is drained by {by}: {_text(node)}"
    if marks and marks[0].text:
        why = f"{node.name} was drained by {marks[0].run}, but {by} took it over: {_text(node)}"
    elif marks:  # only meant to: the mark has no text before the write is known to have happened
        why += f"; whether {marks[0].run} drained it before is not known"
    return _other(by, why)


def _other(owner: str, why: str) -> Holding:
    return Holding(holder=Holder.OTHER, owner=owner, why=why)


def _writer(node: Node) -> str:
    return node.reason_by or "somebody (this release does not tell who)"


def _text(node: Node) -> str:
    return f"'{node.reason[:_SHOWN]}'" if node.reason else "no Reason"
