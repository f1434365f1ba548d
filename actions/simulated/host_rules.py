"""Rules of the machines: power, boot, services, and what slurmd finds when it starts.

Called by `world`. A host knows nothing of the queue; it tells slurmctld by registering.
"""

import hashlib
from datetime import timedelta

from actions.remote_values import CommandResult, Reach, ServiceState
from actions.simulated import controller_rules, queue_rules
from actions.simulated.machines import Host, Unit
from actions.simulated.state import Due, DueKind, State
from actions.vantage import Answer, Tried
from config.node_names import NodeName

BOOT_TIME = timedelta(seconds=90)
NO_SUCH_UNIT = 5
"""Exit code of `systemctl start` for a unit that does not exist."""


def boot_id(state: State, host: Host) -> str:
    """As /proc/sys/kernel/random/boot_id: the same within a boot, another after it."""
    text = f"{state.settings.cluster}:{host.name}:{host.boots}"
    digest = hashlib.sha256(text.encode()).hexdigest()
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]))


def reach(host: Host) -> Reach:
    """What a connection to the host's shell meets."""
    if not host.powered or not host.connected:
        return Reach.TIME_OUT
    return host.shell


def tried(state: State, place: str, host: Host) -> Tried:
    """What the known ports of a host say to the bot (no place) or to another node."""
    asker = state.hosts.get(NodeName(place)) if place else None
    if place and (asker is None or reach(asker) is not Reach.ALIVE):
        evidence = f"{place} cannot be asked"
        return Tried(place=place, answer=Answer.NOT_ASKED, evidence=evidence)
    # What ssh meets with a time-out or without a route is a path that is broken for the bot alone.
    shut = not place and not host.shell.host_alive
    answers = host.powered and host.connected and not shut
    said = "port 22: open" if answers else "ports 22, 6818: no answer within 3 s"
    return Tried(
        place=place or "the bot",
        answer=Answer.ANSWERED if answers else Answer.SILENT,
        evidence=said,
    )


def stop_unit(state: State, host: Host, name: str, verdict: ServiceState, detail: str) -> None:
    """The unit is not running any more."""
    unit = host.units[name]
    unit.state, unit.since, unit.main_pid, unit.detail = verdict, state.now, 0, detail


def start_unit(state: State, host: Host, name: str, restart: bool) -> CommandResult:
    """`systemctl start` or `restart` as the node's shell answers it."""
    unit = host.units.get(name)
    if unit is None:
        return CommandResult(
            exit_code=NO_SUCH_UNIT, errors=f"Failed to start {name}: Unit {name} not found."
        )
    if unit.state is ServiceState.ACTIVE and not restart:
        return CommandResult(exit_code=0)
    if restart and name == "slurmd" and unit.state is ServiceState.ACTIVE:
        _steps_of_restart(state, host, unit)
    if unit.hangs:
        unit.state, unit.since, unit.main_pid = ServiceState.ACTIVATING, state.now, 0
        return CommandResult(exit_code=None, lost="no answer within the time limit")
    if unit.fails:
        stop_unit(state, host, name, ServiceState.FAILED, unit.fails)
        return CommandResult(
            exit_code=1,
            errors=f"Job for {name} failed because the control process exited with error code.",
        )
    run_unit(state, host, unit)
    return CommandResult(exit_code=0)


def run_unit(state: State, host: Host, unit: Unit) -> None:
    """The unit is active; a slurmd looks at its hardware and registers."""
    state.numbered += 1
    unit.state, unit.since, unit.detail = ServiceState.ACTIVE, state.now, ""
    unit.main_pid = 1_000 + state.numbered
    if unit.name == "slurmd":
        host.gpus_reported, host.memory_reported = host.gpus_present, host.memory_present
        host.slurmd_started_at = state.now
        tell_controller(state, host)


def tell_controller(state: State, host: Host) -> None:
    """slurmd registers, if it runs and reaches slurmctld."""
    if host.slurmd_answers:
        controller_rules.register(state, state.nodes[host.name], host)


def power_off(state: State, host: Host, why: str) -> None:
    """Power is gone: no process is left, the log of this boot becomes that of the previous one."""
    host.fed = False
    if not host.powered:
        return
    host.powered = False
    host.previous_log, host.kernel_log = [*host.kernel_log, why], []
    host.steps_stuck = False
    host.ranks, host.doomed = {}, frozenset()
    for unit in host.units.values():
        unit.state, unit.since, unit.main_pid = ServiceState.INACTIVE, state.now, 0


def power_on(state: State, host: Host, takes: timedelta) -> None:
    """Power is back; the host is up when its boot time has passed."""
    host.fed = True
    if host.powered:
        return
    if takes <= timedelta(0):
        booted(state, host)
    else:
        state.later(
            state.now + takes,
            Due(kind=DueKind.BOOTED, subject=host.name, stamp=str(host.boots)),
        )


def booted(state: State, host: Host) -> None:
    """A new boot: new boot id, every unit started, slurmd last."""
    host.powered, host.boots, host.boot_time = True, host.boots + 1, state.now
    for unit in host.units.values():
        if unit.name != "slurmd":
            run_unit(state, host, unit)
    start_unit(state, host, "slurmd", restart=False)
    _lost_steps(state, host.name)


def _steps_of_restart(state: State, host: Host, unit: Unit) -> None:
    """Only KillMode=process lets running steps survive a restart of slurmd (hands 4)."""
    if unit.kill_mode == "process":
        return
    node = state.nodes[host.name]
    for number in tuple(node.jobs):
        job = state.jobs[number]
        if job.state == "RUNNING":
            queue_rules.leave(
                state,
                job,
                "FAILED",
                f"{host.name}: slurmd restarted with KillMode={unit.kill_mode}",
            )


def _lost_steps(state: State, name: NodeName) -> None:
    """A node that answers after a boot has no process of a job that was ending."""
    if state.hosts[name].slurmd_answers:
        queue_rules.release_all(state, state.nodes[name])
