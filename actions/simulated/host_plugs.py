"""Plugs of the machines: power, network, services, hardware, shell.

Called by `plug_verbs` by name. None is an act of the bot.
"""

from datetime import timedelta
from typing import Annotated

from pydantic import SkipValidation

from actions.remote_values import Reach, ServiceState
from actions.simulated import host_rules, training_rules
from actions.simulated.lookups import host_named, unit_of
from actions.simulated.machines import BmcMood
from actions.simulated.state import State
from config.node_names import NodeName

Here = Annotated[State, SkipValidation]
"""The state goes through as it is; only what came over the wire is checked."""

KILLED = "Main process exited, code=killed, status=9/KILL"


def kill_slurmd(state: Here, *, node: NodeName) -> None:
    """`kill -9` of slurmd: the running steps survive, slurmctld notices at its next ping."""
    kill_service(state, node=node, unit="slurmd")


def start_slurmd(state: Here, *, node: NodeName) -> None:
    """Somebody else starts slurmd."""
    host_rules.start_unit(state, host_named(state, node), "slurmd", restart=False)


def kill_service(state: Here, *, node: NodeName, unit: str) -> None:
    """`kill -9` of any unit's main process."""
    host = host_named(state, node)
    unit_of(host, unit)
    host_rules.stop_unit(state, host, unit, ServiceState.FAILED, KILLED)


def stop_service(state: Here, *, node: NodeName, unit: str) -> None:
    """`systemctl stop`."""
    host = host_named(state, node)
    unit_of(host, unit)
    host_rules.stop_unit(state, host, unit, ServiceState.INACTIVE, "")


def hang_service_start(state: Here, *, node: NodeName, unit: str, hangs: bool = True) -> None:
    """The next starts of this unit never end."""
    unit_of(host_named(state, node), unit).hangs = hangs


def fail_service_start(state: Here, *, node: NodeName, unit: str, why: str) -> None:
    """The next starts of this unit fail with these words in its journal; empty text ends that."""
    unit_of(host_named(state, node), unit).fails = why


def set_kill_mode(state: Here, *, node: NodeName, unit: str, mode: str) -> None:
    """systemd's KillMode of this unit."""
    unit_of(host_named(state, node), unit).kill_mode = mode


def kill_host(state: Here, *, node: NodeName) -> None:
    """Power is gone."""
    host_rules.power_off(state, host_named(state, node), "")


def power_on(state: Here, *, node: NodeName, takes: timedelta = host_rules.BOOT_TIME) -> None:
    """Power is back."""
    host_rules.power_on(state, host_named(state, node), takes)


def reboot(
    state: Here, *, node: NodeName, takes: timedelta = timedelta(0), last_words: str = ""
) -> None:
    """The host reboots without slurmctld having asked; `last_words` end its kernel log."""
    host = host_named(state, node)
    host_rules.power_off(state, host, last_words)
    host_rules.power_on(state, host, takes)


def set_bmc(state: Here, *, node: NodeName, mood: BmcMood) -> None:
    """How the BMC behaves from now on."""
    host_named(state, node).bmc = mood


def cut_off(state: Here, *, node: NodeName, cut: bool = True) -> None:
    """The host's network is gone (or back) while its processes go on."""
    host_named(state, node).connected = not cut


def shrink_gpus(state: Here, *, node: NodeName, present: int) -> None:
    """So many GPUs are left; slurmd is restarted, as an operator would, and registers them."""
    host = host_named(state, node)
    host.gpus_present = present
    host.kernel_log.append("NVRM: Xid (PCI:0000:4a:00): 79, GPU has fallen off the bus.")
    host_rules.start_unit(state, host, "slurmd", restart=True)


def lose_gpus(state: Here, *, node: NodeName, present: int) -> None:
    """GPUs fall off the bus under a running slurmd, so slurmctld hears nothing of it."""
    host = host_named(state, node)
    host.gpus_present = present
    host.kernel_log.append("NVRM: Xid (PCI:0000:4a:00): 79, GPU has fallen off the bus.")


def late_driver(state: Here, *, node: NodeName) -> None:
    """slurmd started before the driver: it reports no GPU although all are there."""
    host = host_named(state, node)
    host.gpus_reported, host.slurmd_started_at = 0, state.now
    host_rules.tell_controller(state, host)


def shrink_memory(state: Here, *, node: NodeName, present_mib: int) -> None:
    """A memory module is gone; slurmd is restarted and registers less."""
    host = host_named(state, node)
    host.memory_present = present_mib
    host_rules.start_unit(state, host, "slurmd", restart=True)


def fail_canary(state: Here, *, node: NodeName, says: str = "canary: no NVLink") -> None:
    """What the site's canary finds on this node from now on; the empty text: nothing."""
    host_named(state, node).fails_canary = says


def log_kernel(state: Here, *, node: NodeName, line: str) -> None:
    """The kernel logs a line."""
    host_named(state, node).kernel_log.append(line)


def stick_steps(state: Here, *, node: NodeName, stuck: bool = True) -> None:
    """Processes of jobs ignore SIGKILL: the node stays COMPLETING, then Slurm drains it."""
    host = host_named(state, node)
    host.steps_stuck = stuck
    training_rules.reap(host)


def stop_ranks(state: Here, *, node: NodeName, stopped: bool = True) -> None:
    """SIGSTOP (or SIGCONT) to every process of a job on it."""
    host_named(state, node).ranks_stopped = stopped


def freeze_node(state: Here, *, node: NodeName, frozen: bool = True) -> None:
    """Its file system hangs (or not any more): ranks on it are in D state and outlive SIGKILL."""
    stick_steps(state, node=node, stuck=frozen)


def cut_link(state: Here, *, node: NodeName) -> None:
    """Its network is gone, while its processes and its way to the shared storage live on."""
    cut_off(state, node=node)


def restore_link(state: Here, *, node: NodeName) -> None:
    """Its network is back."""
    cut_off(state, node=node, cut=False)


def set_clock_offset(state: Here, *, node: NodeName, milliseconds: int) -> None:
    """The node's clock is off by so much."""
    host_named(state, node).clock_offset_ms = milliseconds


def set_shell(state: Here, *, node: NodeName, reach: Reach) -> None:
    """What ssh finds on the host from now on."""
    host_named(state, node).shell = reach


def refuse_ssh(state: Here, *, node: NodeName) -> None:
    """sshd is gone, the host lives."""
    set_shell(state, node=node, reach=Reach.REFUSED)


def change_host_key(state: Here, *, node: NodeName) -> None:
    """Another host key than the known one."""
    set_shell(state, node=node, reach=Reach.HOST_KEY_CHANGED)
