"""How the simulated cluster looks from outside: its state as the values of the contract.

Called by `world` for every reading; changes nothing.
"""

from actions.cluster import Controller, Job, Node, NodeBase, Partition, Reservation, Snapshot
from actions.remote_values import HostFacts, Service, ServiceState
from actions.simulated import host_rules
from actions.simulated.machines import Host
from actions.simulated.reservation_rules import DELETED
from actions.simulated.state import JobRecord, NodeRecord, ReservationRecord, State
from config.node_names import NodeName, fold

FAULT_WORDS = ("Xid", "MCE", "AER", "blocked for more than", "Hardware Error", "panic")
"""Words of kernel log lines that look like a fault."""

TAIL = 20


def snapshot(state: State) -> Snapshot:
    """The whole cluster at this moment."""
    flags = _reservation_flags(state)
    hidden = state.controller.hides_jobs
    nodes = {
        record.name: _node(state, record, flags.get(record.name, frozenset()))
        for record in state.nodes.values()
    }
    jobs = () if hidden else tuple(job(record) for record in state.jobs.values())
    return Snapshot(
        cluster=state.settings.cluster,
        taken_at=state.now,
        controller=controller(state),
        nodes=nodes,
        jobs=jobs,
        partitions=tuple(
            Partition(
                name=record.name,
                state=record.state,
                nodes=record.listed,
                default=record.default,
                hidden=record.hidden,
                total_nodes=len(record.nodes),
                priority_tier=record.priority_tier,
                preempt_mode=record.preempt_mode,
            )
            for record in state.partitions.values()
        ),
        reservations=reservations(state),
        blind=blind(state),
    )


def reservations(state: State) -> tuple[Reservation, ...]:
    """All of them."""
    return tuple(_reservation(state, each) for each in state.reservations.values())


def blind(state: State) -> tuple[str, ...]:
    """Why the job list cannot be believed."""
    if not state.controller.hides_jobs:
        return ()
    busy = [record.name for record in state.nodes.values() if record.jobs]
    return (
        "no job is visible although the controller says that work is on "
        f"{fold(busy[:TAIL]) or 'no node'}: this user may not see other users' jobs",
    )


def node(state: State, record: NodeRecord) -> Node:
    """One node."""
    return _node(state, record, _reservation_flags(state).get(record.name, frozenset()))


def jobs_on(state: State, name: NodeName) -> tuple[Job, ...]:
    """Jobs that hold this node."""
    return tuple(job(state.jobs[number]) for number in state.nodes[name].jobs)


def controller(state: State) -> Controller:
    """What slurmctld says of itself."""
    return Controller(
        cluster=state.settings.cluster,
        version=state.settings.version,
        booted_at=state.controller.booted_at,
        slurmd_timeout=state.settings.slurmd_timeout,
        return_to_service=state.settings.return_to_service,
        slurm_user=state.settings.slurm_user,
        reboot_program=state.settings.reboot_program,
        resume_timeout=state.settings.resume_timeout,
        preempt_type=state.settings.preempt_type,
    )


def job(record: JobRecord) -> Job:
    """One job."""
    completing = record.state == "COMPLETING"
    return Job(
        id=record.id,
        slurm_id=record.slurm_id,
        name=record.name,
        user=record.user,
        account=record.account,
        state="RESV_DEL_HOLD" if record.held == DELETED else record.state,
        state_flags=frozenset({"COMPLETING"}) if completing else frozenset(),
        state_reason=record.state_reason or "None",
        partition=record.partition,
        nodes=record.nodes,
        required_nodes=fold(record.required_nodes),
        excluded_nodes=fold(record.excluded_nodes),
        node_count=record.node_count,
        gpus=record.node_count * record.gpus_per_node,
        batch=record.batch,
        requeue=record.requeue,
        restarts=record.restarts,
        priority=0 if record.held else record.priority,
        qos=record.qos,
        reservation=record.reservation,
        dependency="" if record.after_ok is None else f"afterok:{record.after_ok}(unfulfilled)",
        comment=record.comment,
        submitted_at=record.submitted_at,
        started_at=record.started_at,
        ends_at=record.started_at and record.started_at + record.time_limit,
        time_limit=record.time_limit,
        array_job=record.array_job,
        array_task=record.array_task,
        het_job=record.het_job,
        batch_host=record.nodes[0] if record.batch and record.nodes else "",
        eligible_at=record.begin_at or record.submitted_at,
        extra=record.extra,
        work_dir=record.work_dir,
        stdout=record.stdout,
        features=record.constraint,
        shared=record.shared,
    )


def service(host: Host, name: str) -> Service:
    """One unit, as systemctl on the node shows it."""
    unit = host.units.get(name)
    if unit is None:
        return Service(unit=name, state=ServiceState.NOT_FOUND)
    return Service(
        unit=name,
        state=unit.state,
        since=unit.since,
        main_pid=unit.main_pid,
        kill_mode=unit.kill_mode,
        delegate=unit.delegate,
        detail=unit.detail,
    )


def host_facts(state: State, host: Host) -> HostFacts:
    """What the node says of itself."""
    return HostFacts(
        boot_id=host_rules.boot_id(state, host),
        gpus_seen=host.gpus_present,
        memory_mib=host.memory_present,
        cpus=host.cpus,
        clock_offset_ms=host.clock_offset_ms,
        kernel_tail=_faults(host.kernel_log),
        previous_boot_tail=_faults(host.previous_log),
        booted_at=host.boot_time,
        slurmd_version=state.settings.version,
        munge_ok="munge" not in host.units or host.units["munge"].state is ServiceState.ACTIVE,
        gres_seen=f"gpu:{host.gpus_present}" if host.gpus_present else "",
    )


def _node(state: State, record: NodeRecord, reserved: frozenset[str]) -> Node:
    """One node with the flags that its reservations give it."""
    running = {
        number: gpus
        for number, gpus in record.jobs.items()
        if state.jobs[number].state != "COMPLETING"
    }
    flags = record.flags | reserved
    if len(running) < len(record.jobs):
        flags |= {"COMPLETING"}
    held = sum(record.jobs.values())
    cpus = min(record.cpus, sum(_cpus(record, gpus) for gpus in record.jobs.values()))
    return Node(
        name=record.name,
        base=_base(state, record, running),
        flags=flags,
        reason=record.reason,
        reason_by=record.reason_by,
        reason_at=record.reason_at,
        boot_time=record.boot_time,
        slurmd_started_at=record.slurmd_started_at,
        partitions=record.partitions,
        features=record.features,
        gres=f"gpu:{record.gpu_type}:{record.gpus}" if record.gpus else "",
        gpus=record.gpus,
        gpus_used=held,
        cpus=record.cpus,
        cpus_allocated=cpus,
        memory_mib=record.memory_mib,
        tres_allocated=f"cpu={cpus},gres/gpu={held}" if record.jobs else "",
        address=record.name,
        version=state.settings.version,
    )


def _base(state: State, record: NodeRecord, running: dict[int, int]) -> NodeBase:
    """The base word of the node's state."""
    if record.down:
        return NodeBase.DOWN
    if not state.controller.settled:
        return NodeBase.UNKNOWN
    if not running:
        return NodeBase.IDLE
    cpus = sum(_cpus(record, gpus) for gpus in running.values())
    return NodeBase.ALLOCATED if cpus >= record.cpus else NodeBase.MIXED


def _cpus(record: NodeRecord, gpus: int) -> int:
    """CPUs that go with so many GPUs; a job without GPUs has the whole node."""
    return record.cpus * gpus // record.gpus if gpus and record.gpus else record.cpus


def _reservation_flags(state: State) -> dict[NodeName, frozenset[str]]:
    """Flags of nodes in active reservations."""
    flags: dict[NodeName, frozenset[str]] = {}
    for reservation in state.reservations.values():
        if reservation.active(state.now):
            words = {"RESERVED", *({"MAINTENANCE"} if "MAINT" in reservation.flags else ())}
            for name in reservation.nodes:
                flags[name] = flags.get(name, frozenset()) | words
    return flags


def _reservation(state: State, record: ReservationRecord) -> Reservation:
    """One reservation."""
    return Reservation(
        name=record.name,
        nodes=record.nodes,
        starts_at=record.starts_at,
        ends_at=record.ends_at,
        flags=record.flags,
        users=record.users,
        active=record.active(state.now),
    )


def _faults(log: list[str]) -> str:
    """The last lines that look like a fault."""
    return "\n".join([line for line in log if any(word in line for word in FAULT_WORDS)][-TAIL:])
