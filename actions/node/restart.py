"""Whether a host has restarted: its boot id differs, or BootTime did move (hands 2). Pure.

Used by `actions.node.reboot` and `actions.node.wait_for`. BootTime moves by a second at registrations,
so only a minute counts, and only where a boot id cannot be read.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from actions.cluster import Node, NodeBase
from actions.contract import Call
from actions.ownership import UNKNOWN_BOOT

UNDER_WAY = frozenset({"REBOOT_ISSUED", "REBOOT_REQUESTED"})
_MOVED = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """One boot of one host, as far as it is known."""

    boot_id: str = ""
    """Empty where it could not be read."""
    boot_time: datetime | None = None
    """BootTime by the controller."""

    @classmethod
    def of(cls, node: Node, boot_id: str) -> "Boot":
        """The boot that the node is in now; `boot_id` as observations carry it."""
        known = "" if boot_id == UNKNOWN_BOOT else boot_id
        return cls(boot_id=known, boot_time=node.boot_time)


def gave_up(node: Node) -> bool:
    """Whether Slurm waits for no restart any more: DOWN, and the drain that stood before is gone with it
    (measured after ResumeTimeout). With ReturnToService=2 it would be IDLE as soon as it comes back.
    """
    return node.base is NodeBase.DOWN and not node.draining and not node.flags & UNDER_WAY


def planned_boot(call: Call) -> Boot:
    """The boot that the arguments name: the one that was seen before."""
    given = call.arguments.get("boot_id")
    boot_id = given if isinstance(given, str) and given != UNKNOWN_BOOT else ""
    return Boot(boot_id=boot_id, boot_time=moment(call.arguments.get("boot_time")))


def restarted(before: Boot, now: Boot) -> str:
    """How it is known that these are two boots; empty where nothing shows it."""
    if before.boot_id and now.boot_id:
        return f"boot {before.boot_id}, now {now.boot_id}" if before.boot_id != now.boot_id else ""
    if before.boot_time is None or now.boot_time is None:
        return ""
    if abs(now.boot_time - before.boot_time) <= _MOVED:
        return ""
    return f"BootTime {before.boot_time:%Y-%m-%dT%H:%M:%SZ}, now {now.boot_time:%Y-%m-%dT%H:%M:%SZ}"


def moment(text: object) -> datetime | None:
    """A moment as arguments carry it; None for what is none."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.astimezone(UTC) if found.tzinfo else None
