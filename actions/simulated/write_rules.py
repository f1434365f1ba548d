"""The bot's writes to slurmctld, each handed to the rule that makes it. Called by `world`."""

from collections.abc import Callable, Mapping

from actions.contract import Rejected
from actions.simulated import (
    canary_rules,
    controller_rules,
    job_rules,
    partition_rules,
    reboot_rules,
    reservation_rules,
)
from actions.simulated.lookups import node_named, nodes_named
from actions.simulated.state import ReservationRecord, State
from actions.simulated.writes import Write, WriteVerb
from config.node_names import expand_unchecked

Rule = Callable[[State, Write], None]


def on_controller(state: State, write: Write) -> None:
    """Make it. Raises Rejected and UnknownNode; then nothing changed but what the rule says."""
    _RULES[write.verb](state, write)


def _drain(state: State, write: Write) -> None:
    node = node_named(state, write.node)
    controller_rules.drain(state, node, write.arguments["reason"], write.caller)


def _resume(state: State, write: Write) -> None:
    controller_rules.resume(state, node_named(state, write.node))


def _down(state: State, write: Write) -> None:
    reason = write.arguments["reason"]
    if not reason:
        raise Rejected("You must specify a reason when DOWNING or DRAINING a node. Request denied")
    controller_rules.admin_down(state, node_named(state, write.node), reason, write.caller)


def _reboot(state: State, write: Write) -> None:
    reboot_rules.request(state, node_named(state, write.node), write.caller)


def _set_partition_nodes(state: State, write: Write) -> None:
    names = expand_unchecked(write.arguments["nodes"]).names if write.arguments["nodes"] else ()
    partition_rules.set_nodes(state, write.arguments["partition"], names)


def _create_reservation(state: State, write: Write) -> None:
    given = write.arguments
    reservation_rules.create(
        state,
        ReservationRecord(
            name=given["name"],
            nodes=nodes_named(state, given["nodes"]),
            starts_at=state.now,
            ends_at=state.now + reservation_rules.length(given["minutes"]),
            flags=frozenset(word.upper() for word in given["flags"].split(",") if word),
            users=tuple(word for word in given["user"].split(",") if word),
        ),
    )


def _set_reservation_nodes(state: State, write: Write) -> None:
    given = write.arguments
    reservation_rules.set_nodes(state, given["name"], nodes_named(state, given["nodes"]))


def _delete_reservation(state: State, write: Write) -> None:
    reservation_rules.delete(state, write.arguments["name"])


def _requeue(state: State, write: Write) -> None:
    job_rules.requeue(state, write.arguments["jobs"].split(","))


def _change_job(state: State, write: Write) -> None:
    job_rules.change(state, write.arguments["job"], write.arguments)


def _canary_start(state: State, write: Write) -> None:
    given = write.arguments
    node = node_named(state, write.node)
    canary_rules.submit(
        state, node, canary_rules.Wish(given["effect_id"], given["reservation"], given["user"])
    )


def _canary_end(state: State, write: Write) -> None:
    canary_rules.end(state, write.arguments["effect_id"])


_RULES: Mapping[WriteVerb, Rule] = {
    WriteVerb.DRAIN: _drain,
    WriteVerb.RESUME: _resume,
    WriteVerb.DOWN: _down,
    WriteVerb.REBOOT: _reboot,
    WriteVerb.SET_PARTITION_NODES: _set_partition_nodes,
    WriteVerb.CREATE_RESERVATION: _create_reservation,
    WriteVerb.SET_RESERVATION_NODES: _set_reservation_nodes,
    WriteVerb.DELETE_RESERVATION: _delete_reservation,
    WriteVerb.REQUEUE: _requeue,
    WriteVerb.CHANGE_JOB: _change_job,
    WriteVerb.CANARY_START: _canary_start,
    WriteVerb.CANARY_END: _canary_end,
}
