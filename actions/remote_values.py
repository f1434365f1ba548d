"""What a look at a node over the network can answer, as plain values. Made by `actions.remote`."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Reach(StrEnum):
    """The verdict on reachability (hands 2); the first five mean that the host is alive."""

    ALIVE = "alive"
    """A command ran."""
    REFUSED = "refused"
    """The port answered with a refusal."""
    AUTH_FAILED = "auth_failed"
    HOST_KEY_CHANGED = "host_key_changed"
    NO_SHELL = "banner_but_no_shell"
    TIME_OUT = "time_out"
    NO_ROUTE = "no_route"
    NOT_ASKED = "not_asked"
    """The bot itself is cut off, or has no way to ask: no finding."""

    @property
    def host_alive(self) -> bool:
        """Whether something on that host answered."""
        return self in {
            Reach.ALIVE,
            Reach.REFUSED,
            Reach.AUTH_FAILED,
            Reach.HOST_KEY_CHANGED,
            Reach.NO_SHELL,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Reachability:
    """Verdict and the line that proves it."""

    reach: Reach
    evidence: str
    """What the tool said, shortened, from outside."""


class ServiceState(StrEnum):
    """State of a unit as systemd names it."""

    ACTIVE = "active"
    ACTIVATING = "activating"
    DEACTIVATING = "deactivating"
    RELOADING = "reloading"
    INACTIVE = "inactive"
    FAILED = "failed"
    NOT_FOUND = "not-found"
    UNKNOWN = "unknown"
    """The node did not answer: nothing is known of the unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One unit on one node."""

    unit: str
    state: ServiceState
    since: datetime | None = None
    """When it entered this state, by the node's clock."""
    main_pid: int = 0
    kill_mode: str = ""
    """systemd KillMode: only `process` lets running steps survive a restart."""
    delegate: str = ""
    """systemd Delegate (`yes`, `no`); empty where it was not read."""
    detail: str = ""
    """Result or last lines, from outside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """What one node answered to one command. No answer is not exit code 0."""

    exit_code: int | None
    """None: no answer (see `lost`)."""
    output: str = ""
    errors: str = ""
    truncated: bool = False
    """Output passed the cap and was cut."""
    lost: str = ""
    """Why there is no exit code: time-out, agent died, unreachable."""

    @property
    def ok(self) -> bool:
        """Whether the command ran and said 0."""
        return self.exit_code == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BootId:
    """Which boot a host says it is in, or why that is not known."""

    value: str = ""
    lost: str = ""
    """Why there is no value: time-out, agent died, unreachable, an answer that is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """What the node itself says, read in one visit; None or empty where it could not be read."""

    boot_id: str = ""
    gpus_seen: int | None = None
    """GPUs that the node's own tools see (slurmd -C / -G or nvidia-smi -L)."""
    memory_mib: int | None = None
    cpus: int | None = None
    clock_offset_ms: int | None = None
    """Node clock minus bot clock, whole milliseconds."""
    kernel_tail: str = ""
    """Last lines of this boot's kernel log that look like a fault (Xid, MCE, hung task)."""
    previous_boot_tail: str = ""
    """The same of the boot before, where it can be read."""
    booted_at: datetime | None = None
    """When the running kernel started, by the node's clock."""
    slurmd_version: str = ""
    """Of slurmd on the node's disk."""
    not_read: tuple[str, ...] = ()
    """Names of the parts that could not be read: an empty tail of such a part is no finding."""
    munge_ok: bool | None = None
    """Whether the node makes credentials that it believes itself."""
    gres_seen: str = ""
    """GRES that slurmd would register now, as `gpu:h100:8`, sorted; empty where it could not be read."""
