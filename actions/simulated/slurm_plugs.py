"""Plugs of slurmctld and the queue: what people and Slurm itself do to nodes, jobs and partitions.

Called by `plug_verbs` by name. None is an act of the bot.
"""

from datetime import timedelta
from typing import Annotated

from pydantic import SkipValidation

from actions.simulated import (
    controller_rules,
    partition_rules,
    reservation_rules,
    saving,
)
from actions.simulated.controller_rules import NO_ADDRESS
from actions.simulated.lookups import node_named
from actions.simulated.state import Due, DueKind, ReservationRecord, State
from config.node_names import NodeName, expand

Here = Annotated[State, SkipValidation]
"""The state goes through as it is; only what came over the wire is checked."""


def lose_address(state: Here, *, node: NodeName) -> None:
    """slurmctld cannot resolve the node's name."""
    record = node_named(state, node)
    record.reason = ""
    record.flag("NOT_RESPONDING")
    controller_rules.set_down(state, record, NO_ADDRESS)


def find_address(state: Here, *, node: NodeName) -> None:
    """The name is resolved again and slurmctld reconfigured: the node registers."""
    record = node_named(state, node)
    if record.reason == NO_ADDRESS:
        record.down, record.reason, record.reason_by, record.reason_at = False, "", "", None
        controller_rules.contact(state, record, state.hosts[node])


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


def remove_from_partition(state: Here, *, node: NodeName, partition: str) -> None:
    """Somebody takes the node out of the partition; its jobs go on."""
    node_named(state, node)
    left = tuple(name for name in state.partitions[partition].nodes if name != node)
    partition_rules.set_nodes(state, partition, left)


def partition_state(state: Here, *, partition: str, to: str) -> None:
    """UP, DOWN, DRAIN or INACTIVE."""
    state.partitions[partition].state = to
    state.unsettled = True


def reserve(  # noqa: PLR0913  what scontrol is told
    state: Here,
    *,
    name: str,
    nodes: str,
    flags: tuple[str, ...] = ("MAINT",),
    lasts: timedelta,
    user: str = "root",
) -> None:
    """Somebody reserves nodes from now on."""
    state.reservations[name] = ReservationRecord(
        name=name,
        nodes=expand(nodes, state.nodes).names,
        starts_at=state.now,
        ends_at=state.now + lasts,
        flags=frozenset(flags),
        users=(user,),
    )
    state.later(state.now + lasts, Due(kind=DueKind.RESERVATION_EDGE))


def release_reservation(state: Here, *, name: str) -> None:
    """Somebody deletes the reservation. Refused while a job points to it."""
    reservation_rules.delete(state, name)


def controller_down(state: Here, *, killed: bool = True) -> None:
    """slurmctld stops: killed it forgets its last seconds, stopped in order it forgets nothing."""
    if not state.controller.up:
        return
    if killed:
        saving.forget_unsaved(state)
    state.controller.unsaved.clear()
    state.controller.up = False


def controller_up(state: Here, *, ago: timedelta = timedelta()) -> None:
    """slurmctld starts: nodes are UNKNOWN until it has heard of them.

    `ago` is for a slurmctld that started so long before it was heard of again.
    """
    control = state.controller
    if control.up:
        return
    control.up, control.settled, control.booted_at = True, False, state.now - ago
    for node in state.nodes.values():
        # SlurmdTimeout begins anew for every node that does not answer this slurmctld.
        node.last_response = state.now
        node.unflag("NOT_RESPONDING")
    partition_rules.read_configuration(state)
    reservation_rules.drop_lost(state)
    for due in control.missed:
        state.later(state.now + state.settings.settle, due)
    control.missed = []
    state.later(
        state.now + state.settings.settle,
        Due(kind=DueKind.SETTLED, stamp=state.now.isoformat()),
    )


def controller_failover(state: Here, *, takes: timedelta = timedelta(seconds=120)) -> None:
    """The primary dies; after SlurmctldTimeout the backup takes over what was saved."""
    controller_restart(state, killed=True, away=takes)


def reconfigure(state: Here) -> None:
    """`scontrol reconfigure` by somebody: edits of partitions are gone."""
    partition_rules.read_configuration(state)


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
