"""What slurmctld does by itself when something falls due. Called by `world` as time passes."""

from collections.abc import Callable

from actions.simulated import controller_rules, queue_rules, reboot_rules, reservation_rules
from actions.simulated.state import Due, DueKind, State
from config.node_names import NodeName

_VOID_AFTER_START = frozenset({DueKind.PING, DueKind.CONTACT, DueKind.DEADLINE, DueKind.SETTLED})
"""A start of slurmctld begins these anew; the rest is made up for."""


def of_controller(kind: DueKind) -> bool:
    """Whether only a running slurmctld brings this about."""
    return kind in _HANDLERS


def controller_acts(state: State, due: Due) -> None:
    """Do it, or remember it when slurmctld is down."""
    if state.controller.up:
        _HANDLERS[due.kind](state, due)
    elif due.kind not in _VOID_AFTER_START:
        state.controller.missed.append(due)


def _job_end(state: State, due: Due) -> None:
    """A job has run its time, if it is still the same start of it."""
    job = state.jobs.get(int(due.subject))
    if job is not None and job.state in {"RUNNING", "SUSPENDED"} and str(job.restarts) == due.stamp:
        queue_rules.leave(state, job, job.ends_as, "ended by itself")


def _job_forgotten(state: State, due: Due) -> None:
    """MinJobAge has passed."""
    job = state.jobs.get(int(due.subject))
    if job is not None and job.ended_at is not None:
        del state.jobs[job.slurm_id]


def _kill_failed(state: State, due: Due) -> None:
    """A step survived SIGKILL for too long: slurmd gives the job up and drains the node."""
    node = state.nodes[NodeName(due.subject)]
    job = state.jobs.get(int(due.stamp))
    if job is not None and node.name in job.completing and state.hosts[node.name].steps_stuck:
        controller_rules.internal_drain(state, node, "Kill task failed")
        queue_rules.release(state, job, node.name)


def _settled(state: State, due: Due) -> None:
    """slurmctld has heard of its nodes after its start."""
    if due.stamp != state.controller.booted_at.isoformat():
        return
    state.controller.settled, state.unsettled = True, True
    for node in state.nodes.values():
        host = state.hosts[node.name]
        if host.slurmd_answers and host.slurmd_started_at != node.slurmd_started_at:
            controller_rules.register(state, node, host)
        else:
            controller_rules.contact(state, node, host)
    controller_rules.next_ping(state)


_HANDLERS: dict[DueKind, Callable[[State, Due], None]] = {
    DueKind.PING: lambda state, due: controller_rules.ping(state, due.stamp),
    DueKind.CONTACT: lambda state, due: controller_rules.contact(
        state, state.nodes[NodeName(due.subject)], state.hosts[NodeName(due.subject)]
    ),
    DueKind.DEADLINE: lambda state, due: controller_rules.deadline(
        state, state.nodes[NodeName(due.subject)], due.stamp
    ),
    DueKind.REBOOT_LIMIT: lambda state, due: reboot_rules.limit(
        state, state.nodes[NodeName(due.subject)], due.stamp
    ),
    DueKind.RESERVATION_EDGE: lambda state, _: reservation_rules.edge(state),
    DueKind.JOB_END: _job_end,
    DueKind.JOB_FORGOTTEN: _job_forgotten,
    DueKind.KILL_FAILED: _kill_failed,
    DueKind.SETTLED: _settled,
}
