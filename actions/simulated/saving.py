"""What slurmctld has not yet saved: kept until it would be on disk, put back when it is killed (hands 1).

Called by the rules of nodes, jobs and reservations before each update. Requeues are left out: after a
kill slurmctld finds that the job's processes are gone and requeues it by itself.
"""

from datetime import datetime

from actions.simulated.state import (
    JobRecord,
    NodeRecord,
    SavedJob,
    SavedNode,
    SavedReservation,
    State,
)

_ADMIN_FLAGS = frozenset({"DRAIN", "FAIL", "REBOOT_REQUESTED"})


def remember_node(state: State, node: NodeRecord) -> None:
    """Keep what an update of a node replaces."""
    _keep(
        state,
        SavedNode(
            at=state.now,
            node=node.name,
            down=node.down,
            flags=node.flags & _ADMIN_FLAGS,
            reason=node.reason,
            reason_by=node.reason_by,
            reason_at=node.reason_at,
        ),
    )


def remember_job(state: State, job: JobRecord) -> None:
    """Keep what an update of a job replaces."""
    _keep(
        state,
        SavedJob(
            at=state.now,
            slurm_id=job.slurm_id,
            reservation=job.reservation,
            excluded_nodes=job.excluded_nodes,
            priority=job.priority,
            held=job.held,
        ),
    )


def remember_reservation(state: State, name: str) -> None:
    """Keep what an update of reservations replaces."""
    before = state.reservations.get(name)
    _keep(state, SavedReservation(at=state.now, name=name, before=before))


def forget_unsaved(state: State) -> None:
    """slurmctld was killed: updates younger than the save interval never happened."""
    oldest_kept = state.now - state.settings.save_interval
    unsaved = state.controller.unsaved
    while unsaved:
        before = unsaved.pop()
        if before.at <= oldest_kept:
            break
        match before:
            case SavedNode():
                _forget_node(state, before)
            case SavedJob():
                _forget_job(state, before)
            case SavedReservation():
                _forget_reservation(state, before)
    unsaved.clear()


def _keep(state: State, before: SavedNode | SavedJob | SavedReservation) -> None:
    unsaved = state.controller.unsaved
    while unsaved and _on_disk(state, unsaved[0].at):
        unsaved.popleft()
    unsaved.append(before)


def _on_disk(state: State, at: datetime) -> bool:
    return at <= state.now - state.settings.save_interval


def _forget_node(state: State, before: SavedNode) -> None:
    node = state.nodes[before.node]
    node.flags = (node.flags - _ADMIN_FLAGS) | before.flags
    node.down = before.down
    node.reason, node.reason_by = before.reason, before.reason_by
    node.reason_at = before.reason_at
    state.happened("update forgotten", node.name, "slurmctld was killed before it saved")


def _forget_job(state: State, before: SavedJob) -> None:
    job = state.jobs.get(before.slurm_id)
    if job is None:
        return
    job.reservation, job.excluded_nodes = before.reservation, before.excluded_nodes
    job.priority, job.held = before.priority, before.held
    state.happened("update forgotten", job.id, "slurmctld was killed before it saved")


def _forget_reservation(state: State, before: SavedReservation) -> None:
    if before.before is None:
        state.reservations.pop(before.name, None)
    else:
        state.reservations[before.name] = before.before
    state.happened("update forgotten", before.name, "slurmctld was killed before it saved")
