"""The gate that a node must pass before this bot gives it back to service (hands 2).

Pure. Each gate that does not hold is one sentence for people; no sentence means that the node may
return. Used by `actions.node.give_back`; it must never pass what could not be read.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from actions.cluster import Node, NodeBase
from actions.ownership import UNKNOWN_BOOT, Holder, Holding
from actions.remote_values import HostFacts, Service, ServiceState

_UNDER_WAY = frozenset(
    "REBOOT_ISSUED REBOOT_REQUESTED POWERED_DOWN POWERING_DOWN POWERING_UP POWER_DOWN".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Return:
    """What the gate looks at."""

    node: Node
    holding: Holding
    planned_boot: str
    """Boot id that the plan expects, where a reboot was part of it; else empty."""
    facts: HostFacts | None
    """None: the host told nothing."""
    slurmd: Service


def failing_gates(wanted: Return) -> tuple[str, ...]:
    """One sentence for each gate that does not hold, of the cluster's side and the host's."""
    return (*failing_at_controller(wanted.node, wanted.holding), *_failing_at_host(wanted))


def failing_at_controller(node: Node, holding: Holding) -> tuple[str, ...]:
    """The gates that the controller's own record decides; read again right before the write."""
    return tuple(_at_controller(node, holding))


def _at_controller(node: Node, holding: Holding) -> Iterator[str]:
    if holding.holder is not Holder.US:
        yield f"only who drained a node returns it: {holding.why}"
    elif holding.mark is None:
        yield f"the ledger has no open drain of ours on {node.name}"
    if node.unknown_flags:
        flags = ", ".join(sorted(node.unknown_flags))
        yield f"{node.name} carries flags that this version does not know: {flags}"
    if node.base not in {NodeBase.IDLE, NodeBase.ALLOCATED, NodeBase.MIXED, NodeBase.DOWN}:
        yield f"{node.name} is {node.state}, which is not a state to return from"
    if "INVALID_REG" in node.flags:
        yield f"Slurm refused the registration of {node.name} (INVALID_REG)"
    if not node.responding:
        yield f"slurmd of {node.name} does not answer the controller"
    under_way = node.flags & _UNDER_WAY
    if under_way:
        yield f"{node.name} is in a change of its own: {', '.join(sorted(under_way))}"


def _failing_at_host(wanted: Return) -> Iterator[str]:
    name, slurmd, facts = wanted.node.name, wanted.slurmd, wanted.facts
    if slurmd.state is ServiceState.UNKNOWN:
        yield f"the state of {slurmd.unit} on {name} could not be read: {slurmd.detail[:120]}"
    elif slurmd.state is not ServiceState.ACTIVE:
        yield f"{slurmd.unit} on {name} is {slurmd.state}"
    yield from _boot(wanted)
    if facts is None or facts.gpus_seen is None:
        if wanted.node.gpus:
            yield f"the GPUs of {name} could not be counted"
    elif facts.gpus_seen != wanted.node.gpus:
        yield f"{name} sees {facts.gpus_seen} of {wanted.node.gpus} configured GPUs"


def _boot(wanted: Return) -> Iterator[str]:
    name = wanted.node.name
    boot = wanted.facts.boot_id if wanted.facts else ""
    mark = wanted.holding.mark
    if not boot:
        yield f"the boot id of {name} could not be read"
    elif wanted.planned_boot:
        if boot != wanted.planned_boot:
            yield f"{name} runs boot {boot}, planned was {wanted.planned_boot}"
    elif mark is not None and mark.boot_id in {"", UNKNOWN_BOOT}:
        yield (
            f"the boot id of {name} was not known when it was drained: "
            f"give boot_id {boot} to say that this boot is the planned one"
        )
    elif mark is not None and mark.boot_id != boot:
        yield f"{name} was restarted since {mark.run} drained it: boot {mark.boot_id}, now {boot}"
