"""Rules of slurmctld for nodes: ping, DOWN, registration, drain, resume.

Called by `host_rules` and `world`. Follows Slurm 22.05 as measured (hands 1 and 2): an update
overwrites the Reason, an own verdict of slurmctld keeps an older one.
"""

from datetime import datetime

from actions.contract import Rejected
from actions.hands import WrittenReason
from actions.simulated import queue_rules, saving, training_rules
from actions.simulated.machines import Host
from actions.simulated.state import ISSUED, REQUESTED, Due, DueKind, NodeRecord, State

NOT_RESPONDING = "Not responding"
REBOOTED = "Node unexpectedly rebooted"
NO_ADDRESS = "NO NETWORK ADDRESS FOUND"

_NO_CHANGE = "slurm_update error: Invalid node state specified"


def ping(state: State, started: str) -> None:
    """Ask every slurmd; one that does not answer is marked, and gets its deadline."""
    if not state.controller.up or started != state.controller.booted_at.isoformat():
        return
    for node in state.nodes.values():
        contact(state, node, state.hosts[node.name])
    next_ping(state)


def next_ping(state: State) -> None:
    """Put the next round of pings on the list."""
    state.later(
        state.now + state.settings.ping_every,
        Due(kind=DueKind.PING, stamp=state.controller.booted_at.isoformat()),
    )


def contact(state: State, node: NodeRecord, host: Host) -> None:
    """One ping of one node."""
    if NO_ADDRESS in node.reason and node.down:
        return
    if ISSUED in node.flags:
        return  # it is expected back by ResumeTimeout, and until then nobody misses it
    if host.slurmd_answers:
        _answered(state, node, host)
    elif "NOT_RESPONDING" not in node.flags:
        _silent(state, node)


def deadline(state: State, node: NodeRecord, stamp: str) -> None:
    """SlurmdTimeout has passed: DOWN, unless the node has answered since."""
    if ISSUED in node.flags:
        return
    if "NOT_RESPONDING" in node.flags and stamp == node.last_response.isoformat() and not node.down:
        set_down(state, node, NOT_RESPONDING)


def set_down(state: State, node: NodeRecord, reason: str) -> None:
    """slurmctld's own verdict: the node is DOWN, its jobs leave it, an older Reason stays."""
    node.down = True
    if not node.reason:
        _reason(node, reason, state.settings.slurm_user, state.now)
    state.happened("node DOWN", node.name, reason)
    queue_rules.lose_node(state, node, f"{node.name}: {reason}")


def register(state: State, node: NodeRecord, host: Host) -> None:
    """A slurmd has started and says what it found; nothing happens while slurmctld is down."""
    if not state.controller.up:
        return
    rebooted = host.boot_time > node.last_response
    node.boot_time, node.slurmd_started_at = host.boot_time, host.slurmd_started_at
    expected = bool(node.flags & {ISSUED, REQUESTED, "MAINTENANCE"})
    if ISSUED in node.flags and rebooted:
        _back_from_reboot(node)
    if rebooted and not expected and not node.flags & {"DRAIN", "FAIL"} and not node.down:
        if state.settings.return_to_service != 2:  # noqa: PLR2004  the value of slurm.conf
            set_down(state, node, REBOOTED)
        else:
            queue_rules.lose_node(state, node, f"{node.name}: {REBOOTED}")
    elif rebooted:
        queue_rules.lose_node(state, node, f"{node.name}: {REBOOTED}")
    _check_hardware(state, node, host)
    if "INVALID_REG" in node.flags:
        node.last_response = state.now
        node.unflag("NOT_RESPONDING")
        queue_rules.release_all(state, node)
    else:
        _answered(state, node, host)


def drain(state: State, node: NodeRecord, reason: str, by: str) -> None:
    """`scontrol update State=DRAIN`: overwrites whatever Reason was there, ends no job."""
    if not reason:
        raise Rejected("You must specify a reason when DOWNING or DRAINING a node. Request denied")
    saving.remember_node(state, node)
    node.flag("DRAIN")
    _reason(node, reason, by, state.now)


def fail(state: State, node: NodeRecord, reason: str, by: str) -> None:
    """`scontrol update State=FAIL`."""
    saving.remember_node(state, node)
    node.flag("FAIL")
    _reason(node, reason, by, state.now)


def admin_down(state: State, node: NodeRecord, reason: str, by: str) -> None:
    """`scontrol update State=DOWN`: kills at once; the only update that does."""
    saving.remember_node(state, node)
    node.down = True
    _reason(node, reason, by, state.now)
    queue_rules.lose_node(state, node, f"{node.name}: set DOWN by {by}: {reason}")


def edit_reason(state: State, node: NodeRecord, reason: str, by: str) -> None:
    """`scontrol update Reason=…` without a state."""
    saving.remember_node(state, node)
    _reason(node, reason, by, state.now)


def resume(state: State, node: NodeRecord) -> None:
    """`scontrol update State=RESUME`: clears DRAIN, FAIL, reboot flags and the Reason together."""
    if "INVALID_REG" in node.flags:
        raise Rejected(_NO_CHANGE)
    shut = node.flags & {"DRAIN", "FAIL", REQUESTED, ISSUED}
    if not shut and not node.down:
        raise Rejected(_NO_CHANGE)
    saving.remember_node(state, node)
    node.unflag("DRAIN", "FAIL", REQUESTED, ISSUED)
    node.down, node.last_response = False, state.now
    # Measured: for about a second the node reads NOT_RESPONDING with an unknown boot time; without
    # an answer it stays so and is set DOWN again after SlurmdTimeout.
    node.boot_time = None
    _silent(state, node)
    state.later(state.now + state.settings.contact, Due(kind=DueKind.CONTACT, subject=node.name))
    node.reason, node.reason_by, node.reason_at = "", "", None


def internal_drain(state: State, node: NodeRecord, reason: str) -> None:
    """slurmd or a prolog drains as root through the same update, so it replaces the Reason [hands 2]."""
    drain(state, node, reason, "root")
    state.happened("node drained by Slurm", node.name, reason)


def append_reason(state: State, node: NodeRecord, words: str, by: str) -> None:
    """What slurmctld adds to a Reason: once, behind what stands there, in its own name."""
    if words not in node.reason:
        _reason(node, " : ".join(filter(None, (node.reason, words))), by, state.now)


def _back_from_reboot(node: NodeRecord) -> None:
    """The reboot that was asked for is over: a drain stands with its Reason, else that goes too."""
    node.unflag(ISSUED)
    node.down = False
    if not node.flags & {"DRAIN", "FAIL"}:
        node.reason, node.reason_by, node.reason_at = "", "", None


def _silent(state: State, node: NodeRecord) -> None:
    """The node does not answer: from its last answer on SlurmdTimeout runs."""
    node.flag("NOT_RESPONDING")
    state.later(
        max(node.last_response + state.settings.slurmd_timeout, state.now),
        Due(kind=DueKind.DEADLINE, subject=node.name, stamp=node.last_response.isoformat()),
    )


def _answered(state: State, node: NodeRecord, host: Host) -> None:
    """The node has answered; ReturnToService decides whether a DOWN one comes back."""
    node.last_response = state.now
    node.boot_time = node.boot_time or host.boot_time
    node.unflag("NOT_RESPONDING")
    if not host.steps_stuck:
        queue_rules.release_all(state, node)
    training_rules.forget_stale(state, host)
    mode = state.settings.return_to_service
    if node.down and (mode == 2 or (mode == 1 and node.reason == NOT_RESPONDING)):  # noqa: PLR2004
        node.down = False
        if not node.flags & {"DRAIN", "FAIL"}:
            node.reason, node.reason_by, node.reason_at = "", "", None
        state.happened("node returned to service", node.name, f"ReturnToService={mode}")
    state.unsettled = True


def _check_hardware(state: State, node: NodeRecord, host: Host) -> None:
    """Less than configured: INVALID_REG and DRAIN; as configured: INVALID_REG goes, DRAIN stays."""
    if host.gpus_reported < node.gpus:
        what = f"gres/gpu count reported lower than configured ({host.gpus_reported} < {node.gpus})"
    elif host.memory_reported < node.memory_mib:
        what = (
            f"Low RealMemory (reported:{host.memory_reported} < "
            f"100.00% of configured:{node.memory_mib})"
        )
    else:
        node.unflag("INVALID_REG")
        return
    node.flag("INVALID_REG", "DRAIN")
    state.happened("node INVALID_REG", node.name, what)
    if not node.reason:
        _reason(node, what, state.settings.slurm_user, state.now)


def _reason(node: NodeRecord, reason: str, by: str, at: datetime) -> None:
    """Write the Reason with its writer."""
    node.reason, node.reason_by, node.reason_at = reason, by, at
    node.written.append(WrittenReason(reason=reason, by=by, at=at))
