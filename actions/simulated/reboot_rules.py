"""Rules of a reboot that slurmctld is asked for: plain, so that a drain stands (hands 2).

Called by `write_rules`, `world` and `due_rules`; what follows when the node registers again is with
`controller_rules`. States and Reasons are those of 22.05 as measured.
"""

from actions.simulated import controller_rules, host_rules, saving
from actions.simulated.state import ISSUED, REQUESTED, Due, DueKind, NodeRecord, State


def request(state: State, node: NodeRecord, by: str) -> None:
    """`scontrol reboot`: waits for the node's work; on one that is asked already it does nothing."""
    if node.flags & {REQUESTED, ISSUED}:
        return
    saving.remember_node(state, node)
    node.flag(REQUESTED)
    if not node.reason:
        controller_rules.append_reason(state, node, "reboot requested", by)
    state.unsettled = True


def issue_due(state: State) -> None:
    """Every node that waits for its reboot and has no work left is rebooted."""
    if not (state.controller.up and state.controller.settled):
        return
    for node in state.nodes.values():
        if REQUESTED in node.flags and not node.jobs:
            _issue(state, node)


def limit(state: State, node: NodeRecord, stamp: str) -> None:
    """ResumeTimeout has passed and the node has not registered since."""
    if ISSUED in node.flags and stamp == node.rebooting_since:
        # Measured: 22.05 takes the drain away with it, whoever set it.
        node.unflag(ISSUED, "DRAIN")
        state.happened("node DOWN", node.name, "reboot timed out")
        controller_rules.append_reason(state, node, "reboot timed out", state.settings.slurm_user)


def _issue(state: State, node: NodeRecord) -> None:
    """slurmd is told; without a RebootProgram it does nothing."""
    host = state.hosts[node.name]
    node.unflag(REQUESTED)
    node.flag(ISSUED)
    node.down, node.rebooting_since = True, state.now.isoformat()
    controller_rules.append_reason(state, node, "reboot issued", state.settings.slurm_user)
    state.later(
        state.now + state.settings.resume_timeout,
        Due(kind=DueKind.REBOOT_LIMIT, subject=node.name, stamp=node.rebooting_since),
    )
    state.happened("reboot issued", node.name, "slurmctld was asked for it")
    if host.slurmd_answers and state.settings.reboot_program:
        host_rules.power_off(state, host, "")
        host_rules.power_on(state, host, host.boot_takes)
