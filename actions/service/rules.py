"""What the state of a unit means for starting or restarting it. Pure.

Used by `actions.service.start` and `actions.service.restart`. A restart must never be allowed while
it could end a job, or while it could not be told whether it would (hands 4).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from actions.cluster import Job, Node
from actions.contract import Call
from actions.remote_values import HostFacts, Service, ServiceState

_SECOND = timedelta(seconds=1)
"""systemd's times are whole seconds."""
_MILLISECOND = timedelta(milliseconds=1)
_GRES = re.compile(r"(?:^|,)(\w+)(?::[\w.-]*[A-Za-z][\w.-]*)?:(\d{1,9})(?![\w.])", re.ASCII)
_DOWN = frozenset({ServiceState.INACTIVE, ServiceState.FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """What a restart is judged from."""

    node: Node
    jobs: tuple[Job, ...]
    jobs_blind: str
    service: Service
    facts: HostFacts | None
    is_slurmd: bool
    largest_clock_offset: timedelta


def running(service: Service) -> bool:
    """Active with a main process: what a start must have achieved."""
    return service.state is ServiceState.ACTIVE and service.main_pid > 0


def since_text(service: Service) -> str:
    """` since …`, if that is known."""
    return f" since {service.since:%Y-%m-%dT%H:%M:%SZ}" if service.since else ""


def state_text(service: Service) -> str:
    """State, time and process: unchanged means that no start and no restart happened."""
    return f"{service.unit} {service.state}{since_text(service)} pid {service.main_pid}"


def began_after_intent(service: Service, call: Call, offset_ms: int) -> bool:
    """Whether the unit became active after this very attempt was intended.

    Only a recovery knows its intent; `since` is by the node's clock and in whole seconds.
    """
    if call.intended_at is None or service.since is None:
        return False
    began: datetime = service.since - offset_ms * _MILLISECOND
    return began + _SECOND > call.intended_at


def cannot_start(service: Service) -> str:
    """Why a start makes no sense; empty if it does."""
    if service.state is ServiceState.NOT_FOUND:
        return f"there is no unit {service.unit} on the node"
    if service.state is ServiceState.UNKNOWN:
        return f"the state of {service.unit} could not be read: {service.detail[:120]}"
    if service.state not in _DOWN and service.state is not ServiceState.ACTIVE:
        return f"{service.unit} is {service.state}{since_text(service)}: in a change of its own"
    return ""


def cannot_restart(wanted: Restart) -> str:
    """Why a restart is refused; empty if it is safe."""
    return cannot_start(wanted.service) or "; ".join(_risks(wanted))


def _risks(wanted: Restart) -> Iterator[str]:
    name, service = wanted.node.name, wanted.service
    if wanted.jobs_blind:
        yield f"it cannot be told which jobs are on {name}: {wanted.jobs_blind[:160]}"
        return
    jobs = [job.id for job in wanted.jobs if job.holds_nodes and name in job.nodes]
    if not jobs and not wanted.node.busy:
        return
    who = f"with work on {name} (job {', '.join(jobs[:5]) or 'that is not shown'})"
    if service.kill_mode != "process":
        yield (
            f"{who}: {service.unit} has KillMode={service.kill_mode or 'not read'}, "
            "and only KillMode=process lets running steps survive"
        )
    if service.delegate != "yes":
        yield (
            f"{who}: {service.unit} has Delegate={service.delegate or 'not read'}, "
            "and only with Delegate=yes do its steps keep their cgroups"
        )
    if wanted.is_slurmd:
        yield from _slurmd_risks(wanted, who)


def _slurmd_risks(wanted: Restart, who: str) -> Iterator[str]:
    """A slurmd that cannot register again takes the node and its jobs with it."""
    node, facts = wanted.node, wanted.facts
    if facts is None:
        yield f"{who}: the host could not be read, so a restart may not come back"
        return
    on_disk, running = facts.slurmd_version or "not read", node.version or "not known"
    if on_disk != running:
        yield f"{who}: slurmd on disk is {on_disk}, running is {running}"
    if not facts.munge_ok:
        yield f"{who}: munge on {node.name} makes no credential that it believes itself"
    if facts.clock_offset_ms is None:
        yield f"{who}: the clock of {node.name} was not read"
    offset = abs(facts.clock_offset_ms or 0) * _MILLISECOND
    if offset > wanted.largest_clock_offset:
        yield f"{who}: the clock of {node.name} is off by {int(offset.total_seconds())} s"
    yield from (f"{who}: {text}" for text in _less_than_configured(node, facts))


def _less_than_configured(node: Node, facts: HostFacts) -> Iterator[str]:
    """What slurmd would register now against slurm.conf: less is INVALID_REG, and more is let pass."""
    for what, seen, configured in (
        ("GPUs", facts.gpus_seen, node.gpus),
        ("CPUs", facts.cpus, node.cpus),
        ("MiB of memory", facts.memory_mib, node.memory_mib),
    ):
        if configured and (seen is None or seen < configured):
            yield f"{'?' if seen is None else seen} of {configured} {what} are seen"
    seen_gres, wanted_gres = _counted(facts.gres_seen), _counted(node.gres)
    if any(seen_gres.get(name, 0) < count for name, count in wanted_gres.items()):
        yield f"slurmd would register GRES {facts.gres_seen or 'not read'} of {node.gres}"


def _counted(gres: str) -> dict[str, int]:
    """`gpu:h100:8(S:0-1),shard:16` as counts by name; a site may leave out the type on either side."""
    found: dict[str, int] = {}
    for name, count in _GRES.findall(gres):
        found[name] = found.get(name, 0) + int(count)
    return found
