"""When a machine's power may be taken away or given, whatever a runbook says (hands 2). Pure.

Used by `actions.power.verbs`; each reason against it is one sentence for people. A host that answers in
any way, a bot that is cut off, a drain that is not ours and a job list that may lie all forbid it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from actions.cluster import Job, Node, NodeBase, drained
from actions.contract import JobLoss
from actions.host_verdict import HostVerdict, Verdict
from actions.ownership import Holder, Holding
from actions.power_hands import PowerReading
from actions.remote_values import Reach, Reachability

_UNDER_WAY = frozenset(
    "REBOOT_ISSUED REBOOT_REQUESTED POWERING_DOWN POWERING_UP POWER_DOWN POWER_UP".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was read of a node, its host and its power."""

    node: Node
    jobs: tuple[Job, ...]
    jobs_blind: str
    """Why the job list cannot be believed, or empty."""
    holding: Holding
    reach: Reachability
    verdict: Verdict
    power: PowerReading
    """Off means that it was read off twice."""
    losses: tuple[JobLoss, ...]
    """The jobs that end with the power."""
    boot_id: str
    """`unknown` where the host cannot be asked: the plan is void once one is read (hands 2)."""


def against_taking(seen: Seen, *, comes_back: bool) -> tuple[str, ...]:
    """Why the power stays on; empty where it may be taken. `comes_back`: it is given again at once."""
    return (*_holder(seen, drain=comes_back), *_jobs(seen), *_host(seen))


def against_giving(seen: Seen) -> tuple[str, ...]:
    """Why the power is not given; empty where it may be."""
    cut_off = seen.verdict.host is HostVerdict.CUT_OFF
    return (*_holder(seen, drain=True), *((seen.verdict.why,) if cut_off else ()))


def _holder(seen: Seen, *, drain: bool) -> Iterator[str]:
    """`drain`: DOWN is not enough, because a host that boots makes its node IDLE (ReturnToService)."""
    node, held = seen.node, seen.holding
    if node.unknown_flags or node.base in {NodeBase.OTHER, NodeBase.FUTURE, NodeBase.ERROR}:
        yield f"{node.name} is {node.state}, a state that this version does not act on"
    under_way = node.flags & _UNDER_WAY
    if under_way:
        yield f"{node.name} is in a change of its own: {', '.join(sorted(under_way))}"
    if held.holder is Holder.OTHER:
        yield f"hands off: {held.why}"
    elif held.holder is Holder.US and held.mark is not None:
        return
    elif drain or node.base is not NodeBase.DOWN:
        what = "drained by us" if drain else "drained by us or DOWN"
        yield f"{node.name} is not {what}: {held.why}"


def _jobs(seen: Seen) -> Iterator[str]:
    name = seen.node.name
    if seen.jobs_blind:
        yield f"it cannot be told whose jobs end on {name}: {seen.jobs_blind[:160]}"
    elif seen.node.busy and not _holding(seen):
        yield f"{name} is {seen.node.state}, but no job is shown: whose work would end is not known"


def _host(seen: Seen) -> Iterator[str]:
    verdict, name = seen.verdict, seen.node.name
    if verdict.host is HostVerdict.DEAD:
        return
    if verdict.host is not HostVerdict.ALIVE:
        yield f"that {name} is dead is not shown ({verdict.host}): {verdict.why}"
    elif seen.reach.reach is not Reach.ALIVE:
        yield f"{name} is alive, so its power stays as it is: {verdict.why}"
    elif not drained(seen.node, seen.jobs):
        yield f"{name} is alive and not drained yet ({seen.node.state}): nothing takes its power"


def contradiction(seen: Seen) -> str:
    """Why "off" is no finding about this host; empty where nothing speaks against it."""
    if seen.verdict.host is HostVerdict.CUT_OFF:
        return f"no diagnosis of {seen.node.name}: {seen.verdict.why}"
    if seen.verdict.host is not HostVerdict.ALIVE:
        return ""
    return (
        f"{seen.power.source} says off, but {seen.node.name} answers: that address is the BMC of "
        f"another machine, or it lies ({seen.verdict.why})"
    )


def _holding(seen: Seen) -> list[Job]:
    return [job for job in seen.jobs if job.holds_nodes and seen.node.name in job.nodes]
