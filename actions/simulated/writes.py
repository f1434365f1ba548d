"""The writes of the bot as values, and how one can go wrong.

Used by `world`, by the client and by tests. Nothing here changes a world.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from config.node_names import NodeName

NO_NODE = NodeName("")


class WriteVerb(StrEnum):
    """The writes that the bot can make."""

    DRAIN = "drain"
    RESUME = "resume"
    START_SERVICE = "start_service"
    RESTART_SERVICE = "restart_service"
    DOWN = "down"
    REBOOT = "reboot"
    SET_PARTITION_NODES = "set_partition_nodes"
    CREATE_RESERVATION = "create_reservation"
    SET_RESERVATION_NODES = "set_reservation_nodes"
    DELETE_RESERVATION = "delete_reservation"
    REQUEUE = "requeue"
    CHANGE_JOB = "change_job"
    CANARY_START = "canary_start"
    CANARY_END = "canary_end"
    POWER_OFF = "power_off"
    POWER_ON = "power_on"
    POWER_CYCLE = "power_cycle"

    @property
    def on_controller(self) -> bool:
        """Whether slurmctld is asked, and not a host or its BMC."""
        return self not in _ELSEWHERE


_ELSEWHERE = frozenset(
    {
        *(WriteVerb.START_SERVICE, WriteVerb.RESTART_SERVICE),
        *(WriteVerb.POWER_OFF, WriteVerb.POWER_ON, WriteVerb.POWER_CYCLE),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write as it was asked for."""

    verb: WriteVerb
    node: NodeName = NO_NODE
    """Empty where the write is not about one node."""
    arguments: Mapping[str, str]
    """Lists are joined by commas, lengths are whole minutes; what is not there stays as it is."""
    caller: str = ""
    pid: int = 0
    limit: timedelta = timedelta(seconds=30)


class FaultKind(StrEnum):
    """How a write can go wrong."""

    REJECTED = "rejected"
    """The controller says no, with `words`."""
    APPLIED_NO_ANSWER = "applied_no_answer"
    LOST = "lost"
    """Neither applied nor answered."""
    APPLIED_LATER = "applied_later"
    """Not answered, applied after `delay`: also when whoever asked is dead by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What will go wrong with the next write."""

    kind: FaultKind
    verb: WriteVerb | None = None
    """None: whichever write comes."""
    delay: timedelta = timedelta(seconds=3)
    words: str = "slurm_update error: Access/permission denied"
    holds: bool = False
    """The connection stays open without an answer, until the caller gives up or dies."""


class When(StrEnum):
    """Where a foreign act is put."""

    BEFORE = "before"
    """Between the last look and the write."""
    AFTER = "after"
    """Between the write and the read-back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignAct:
    """Plugs that are pulled exactly at the next write."""

    when: When
    plugs: tuple[Mapping[str, object], ...]
    """Each with `plug` and its arguments."""
    verb: WriteVerb | None = None


class NoAnswer(Exception):
    """The caller of this write gets no answer; `holds` says whether its connection stays open."""

    def __init__(self, holds: bool) -> None:
        """Keep what the server must do with the connection."""
        super().__init__("no answer")
        self.holds = holds
