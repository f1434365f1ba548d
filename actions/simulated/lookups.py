"""Things of the simulated cluster by name, with the errors that Slurm and systemd would give."""

from actions.contract import Rejected, UnknownNode
from actions.simulated.state import Host, JobRecord, NodeRecord, State, Unit
from config.node_names import NodeName


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
