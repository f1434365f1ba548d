"""The plugs: what a person, a fault or another tool can do to the simulated cluster.

Called by `world` by name. Each is what the field calls it; none is an act of the bot.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated

from pydantic import SkipValidation, validate_call

from actions.contract import Rejected
from actions.remote_values import Reach, ServiceState
from actions.simulated import controller_rules, host_rules, queue_rules
from actions.simulated.controller_rules import NO_ADDRESS
from actions.simulated.lookups import host_named, job_numbered, node_named, unit_of
from actions.simulated.state import Due, DueKind, JobRecord, ReservationRecord, State
from config.ids import JobId
from config.node_names import NodeName, expand

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


def cut_off(state: Here, *, node: NodeName, cut: bool = True) -> None:
    """The host's network is gone (or back) while its processes go on."""
    host_named(state, node).connected = not cut


def shrink_gpus(state: Here, *, node: NodeName, present: int) -> None:
    """So many GPUs are left; slurmd is restarted, as an operator would, and registers them."""
    host = host_named(state, node)
    host.gpus_present = present
    host.kernel_log.append("NVRM: Xid (PCI:0000:4a:00): 79, GPU has fallen off the bus.")
    host_rules.start_unit(state, host, "slurmd", restart=True)


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


def lose_address(state: Here, *, node: NodeName) -> None:
    """slurmctld cannot resolve the node's name."""
    record = node_named(state, node)
    record.reason = ""
    record.flag("NOT_RESPONDING")
    controller_rules.set_down(state, record, NO_ADDRESS)


def log_kernel(state: Here, *, node: NodeName, line: str) -> None:
    """The kernel logs a line."""
    host_named(state, node).kernel_log.append(line)


def stick_steps(state: Here, *, node: NodeName, stuck: bool = True) -> None:
    """Processes of jobs ignore SIGKILL: the node stays COMPLETING, then Slurm drains it."""
    host_named(state, node).steps_stuck = stuck


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


def admin_drain(
    state: Here, *, node: NodeName, reason: str, by: str, ago: timedelta = timedelta(0)
) -> None:
    """Somebody drains a node, or did so some time ago."""
    record = node_named(state, node)
    controller_rules.drain(state, record, reason, by)
    record.reason_at = state.now - ago


def admin_resume(state: Here, *, node: NodeName) -> None:
    """Somebody resumes a node."""
    controller_rules.resume(state, node_named(state, node))


def admin_down(state: Here, *, node: NodeName, reason: str, by: str) -> None:
    """Somebody sets a node DOWN, which kills its jobs."""
    controller_rules.admin_down(state, node_named(state, node), reason, by)


def admin_fail(state: Here, *, node: NodeName, reason: str, by: str) -> None:
    """Somebody sets a node FAIL."""
    controller_rules.fail(state, node_named(state, node), reason, by)


def edit_reason(state: Here, *, node: NodeName, reason: str, by: str) -> None:
    """Somebody edits the Reason."""
    controller_rules.edit_reason(state, node_named(state, node), reason, by)


def internal_drain(state: Here, *, node: NodeName, reason: str) -> None:
    """Slurm itself drains, as after a step that it could not kill."""
    controller_rules.internal_drain(state, node_named(state, node), reason)


def start_job(state: Here, *, job: int, nodes: str) -> None:
    """A pending job starts on exactly these nodes."""
    record = job_numbered(state, job)
    if record.state != "PENDING":
        raise Rejected(f"job {record.id} is {record.state}, not PENDING")
    names = expand(nodes, state.nodes).names
    record.node_count = len(names)
    queue_rules.start(state, record, names)


def end_job(state: Here, *, job: int, outcome: str = "COMPLETED") -> None:
    """The job ends by itself, or its owner cancels it."""
    record = job_numbered(state, job)
    if not state.controller.up:
        state.controller.missed.append(
            Due(kind=DueKind.JOB_END, subject=str(job), stamp=str(record.restarts))
        )
        return
    if record.ended_at is None and record.state != "COMPLETING":
        queue_rules.leave(state, record, outcome, "ended by itself or by its owner")


def requeue_job(state: Here, *, job: int) -> None:
    """`scontrol requeue`."""
    record = job_numbered(state, job)
    if not record.batch:
        raise Rejected("Only batch jobs are accepted or processed")
    if not record.requeue:
        raise Rejected("Requested operation is presently disabled")
    if record.state == "PENDING":
        raise Rejected("Job is pending execution")
    if record.state in {"RUNNING", "SUSPENDED"}:
        queue_rules.leave(state, record, "PENDING", "requeued by an operator")


def suspend_job(state: Here, *, job: int) -> None:
    """`scontrol suspend`."""
    record = job_numbered(state, job)
    if record.state == "RUNNING":
        record.state = "SUSPENDED"


def submit_job(  # noqa: PLR0913  what sbatch is told
    state: Here, *, name: str, user: str, partition: str, shape: str = "1x8", held: str = ""
) -> int:
    """Somebody submits a batch job of `nodes x GPUs per node`; answers its number."""
    if partition not in state.partitions:
        raise Rejected("Invalid partition name specified")
    nodes, _, gpus = shape.partition("x")
    number = max(state.jobs, default=0) + 1
    state.jobs[number] = JobRecord(
        id=JobId(str(number)),
        slurm_id=number,
        name=name,
        user=user,
        partition=partition,
        node_count=int(nodes),
        gpus_per_node=int(gpus or 0),
        held=held,
        submitted_at=state.now,
    )
    state.unsettled = True
    return number


def remove_from_partition(state: Here, *, node: NodeName, partition: str) -> None:
    """Somebody takes the node out of the partition; its jobs go on."""
    record, group = node_named(state, node), state.partitions[partition]
    group.nodes = tuple(name for name in group.nodes if name != node)
    record.partitions -= {partition}


def partition_state(state: Here, *, partition: str, to: str) -> None:
    """UP, DOWN, DRAIN or INACTIVE."""
    state.partitions[partition].state = to
    state.unsettled = True


def reserve(
    state: Here, *, name: str, nodes: str, flags: tuple[str, ...] = ("MAINT",), lasts: timedelta
) -> None:
    """Somebody reserves nodes from now on."""
    state.reservations[name] = ReservationRecord(
        name=name,
        nodes=expand(nodes, state.nodes).names,
        starts_at=state.now,
        ends_at=state.now + lasts,
        flags=frozenset(flags),
        users=("root",),
    )
    state.later(state.now + lasts, Due(kind=DueKind.RESERVATION_EDGE))


def release_reservation(state: Here, *, name: str) -> None:
    """Somebody deletes the reservation."""
    state.reservations.pop(name, None)
    state.unsettled = True


def controller_down(state: Here, *, killed: bool = True) -> None:
    """slurmctld stops: killed it forgets its last seconds, stopped in order it forgets nothing."""
    if not state.controller.up:
        return
    if killed:
        controller_rules.forget_unsaved(state)
    state.controller.unsaved.clear()
    state.controller.up = False


def controller_up(state: Here) -> None:
    """slurmctld starts: nodes are UNKNOWN until it has heard of them."""
    control = state.controller
    if control.up:
        return
    control.up, control.settled, control.booted_at = True, False, state.now
    for node in state.nodes.values():
        # SlurmdTimeout begins anew for every node that does not answer this slurmctld.
        node.last_response = state.now
        node.unflag("NOT_RESPONDING")
    for due in control.missed:
        state.later(state.now + state.settings.settle, due)
    control.missed = []
    state.later(
        state.now + state.settings.settle,
        Due(kind=DueKind.SETTLED, stamp=state.now.isoformat()),
    )


def controller_restart(
    state: Here, *, killed: bool = True, away: timedelta = timedelta(seconds=1)
) -> None:
    """slurmctld goes and comes back after some time."""
    controller_down(state, killed=killed)
    state.later(state.now + away, Due(kind=DueKind.CONTROLLER_BACK))


def slow_controller(state: Here, *, delay: timedelta) -> None:
    """Each answer of slurmctld takes so long: a caller with less patience gets a time-out."""
    state.controller.answer_delay = delay


def hide_jobs(state: Here, *, hidden: bool = True) -> None:
    """PrivateData=jobs, with the bot's rights too small: the job list is empty without an error."""
    state.controller.hides_jobs = hidden


_ALL: tuple[Callable[..., object], ...] = (
    *(kill_slurmd, start_slurmd, kill_service, stop_service, hang_service_start),
    *(fail_service_start, set_kill_mode, kill_host, power_on, reboot, cut_off, shrink_gpus),
    *(late_driver, shrink_memory, lose_address, log_kernel, stick_steps, set_clock_offset),
    *(set_shell, refuse_ssh, change_host_key, admin_drain, admin_resume, admin_down, admin_fail),
    *(edit_reason, internal_drain, start_job, end_job, requeue_job, suspend_job, submit_job),
    *(remove_from_partition, partition_state, reserve, release_reservation, controller_down),
    *(controller_up, controller_restart, slow_controller, hide_jobs),
)

PLUGS = {verb.__name__: validate_call(verb) for verb in _ALL}
"""Every plug by its name, with its arguments checked."""
