"""The machines of the simulated cluster: power, network, shell, services, hardware, BMC.

Plain data that the rules beside it change in place; a machine knows nothing of slurmctld.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from actions.remote_values import Reach, ServiceState
from config.node_names import NodeName


@dataclass(slots=True, kw_only=True)
class Unit:
    """One systemd unit on one host."""

    name: str
    state: ServiceState = ServiceState.ACTIVE
    since: datetime
    main_pid: int = 0
    kill_mode: str = "process"
    delegate: str = "yes"
    detail: str = ""
    hangs: bool = False
    """A start never ends: the plug `hang_service_start`."""
    fails: str = ""
    """Why a start fails; empty when it succeeds."""


class BmcMood(StrEnum):
    """How the BMC of a host behaves."""

    HONEST = "honest"
    SAYS_OFF = "says_off"
    """Says off, whatever is so."""
    FLICKERS = "flickers"
    """Every other answer is off, whatever is so."""
    DEAF = "deaf"
    """Accepts every request and does nothing."""
    REFUSES = "refuses"
    SILENT = "silent"


@dataclass(slots=True, kw_only=True)
class Host:
    """The machine behind a node: power, network, shell, services, hardware."""

    name: NodeName
    fed: bool = True
    """Whether its power supply gives power, which is what the BMC says; booting takes time."""
    bmc: BmcMood = BmcMood.HONEST
    bmc_asked: int = 0
    event_log: list[str] = field(default_factory=list)
    """The hardware's own log."""
    powered: bool = True
    connected: bool = True
    """Whether its network reaches the controller and the bot; a cut-off host goes on computing."""
    shell: Reach = Reach.ALIVE
    """What ssh finds while the host is powered and connected."""
    boots: int = 1
    boot_takes: timedelta = timedelta(seconds=90)
    """From the order to reboot until its slurmd runs again."""
    fails_canary: str = ""
    """What the site's canary finds on it; empty: nothing."""
    boot_time: datetime
    gpus_present: int
    memory_present: int
    cpus: int
    clock_offset_ms: int = 0
    units: dict[str, Unit]
    kernel_log: list[str] = field(default_factory=list)
    previous_log: list[str] = field(default_factory=list)
    gpus_reported: int
    """What the running slurmd found when it started."""
    memory_reported: int
    slurmd_started_at: datetime
    steps_stuck: bool = False
    """A process of a job ignores SIGKILL: the node stays COMPLETING."""
    ranks: dict[int, int] = field(default_factory=dict)
    """Jobs with processes here, and the restart count of the start to which they belong."""
    doomed: frozenset[int] = frozenset()
    """Jobs whose processes were told to end: those in D state do so when they leave it."""
    ranks_stopped: bool = False
    """SIGSTOP: they do nothing, and SIGKILL still ends them."""

    def runs(self, unit: str) -> bool:
        """Whether that unit is active on a powered host."""
        return self.powered and unit in self.units and self.units[unit].state is ServiceState.ACTIVE

    @property
    def slurmd_answers(self) -> bool:
        """Whether slurmctld gets an answer: slurmd alone is not enough without munge."""
        return self.connected and self.runs("slurmd") and self.runs("munge")
