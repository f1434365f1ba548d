"""Things of the simulated cluster by name, with the errors that Slurm and systemd would give."""

from actions.contract import Rejected, UnknownJob, UnknownNode
from actions.simulated.machines import Host, Unit
from actions.simulated.state import JobRecord, NodeRecord, State
from config.ids import JobId
from config.node_names import NodeName, NodeNameError, expand


def node_named(state: State, name: NodeName) -> NodeRecord:
    """The controller's record of that node. Raises UnknownNode."""
    record = state.nodes.get(name)
    if record is None:
        raise UnknownNode(f"Invalid node name specified: {name!a}")
    return record


def host_named(state: State, name: NodeName) -> Host:
    """The machine of that name. Raises UnknownNode."""
    host = state.hosts.get(name)
    if host is None:
        raise UnknownNode(f"Could not resolve hostname {name!a}")
    return host


def job_numbered(state: State, number: int) -> JobRecord:
    """The job with the controller's number. Raises Rejected."""
    record = state.jobs.get(number)
    if record is None:
        raise Rejected(f"Invalid job id specified: {number}")
    return record


def unit_of(host: Host, name: str) -> Unit:
    """A unit that is on the host. Raises Rejected."""
    unit = host.units.get(unit_name(name))
    if unit is None:
        raise Rejected(f"Unit {name!a} not found on {host.name}")
    return unit


def unit_name(name: str) -> str:
    """systemctl takes `slurmd` and `slurmd.service` for the same unit."""
    return name.removesuffix(".service")


def nodes_named(state: State, text: str) -> tuple[NodeName, ...]:
    """The nodes of a list as Slurm takes it; none for an empty text. Raises Rejected."""
    if not text:
        return ()
    try:
        return expand(text, state.nodes).names
    except NodeNameError as error:
        raise Rejected("Invalid node name specified") from error


def jobs_addressed(state: State, name: str) -> tuple[JobRecord, ...]:
    """The job of that name or number, or all tasks in memory of an array's number. Raises Rejected."""
    found = tuple(
        job
        for job in state.jobs.values()
        if name in {job.id, str(job.slurm_id)} or name == str(job.array_job)
    )
    if not found:
        raise Rejected(f"Invalid job id specified for job {name}")
    return found


def job_shown(state: State, name: JobId) -> JobRecord:
    """The one job, array task or het part of that name. Raises UnknownJob."""
    for job in state.jobs.values():
        if name in {job.id, str(job.slurm_id)}:
            return job
    array, _, task = name.partition("_")
    for job in state.jobs.values():
        if str(job.array_job) == array and task in task_numbers(job.array_task):
            return job
    raise UnknownJob(f"Invalid job id specified: {name!a}")


def task_numbers(written: str) -> frozenset[str]:
    """The tasks of `2-9%3,11`, as text."""
    found: set[str] = set()
    for part in written.partition("%")[0].split(","):
        first, dash, last = part.partition("-")
        if dash and first.isdigit() and last.isdigit():
            found |= {str(number) for number in range(int(first), int(last) + 1)}
        elif part:
            found.add(part)
    return frozenset(found)
