"""Rules of slurmctld for partitions: an edit of the node list, and how it is lost (hands 2).

Called by `write_rules` and `slurm_plugs`.
"""

from collections.abc import Sequence

from actions.contract import Rejected
from actions.simulated.state import PartitionRecord, State
from config.node_names import NodeName


def set_nodes(state: State, name: str, nodes: Sequence[NodeName]) -> None:
    """`scontrol update PartitionName=… Nodes=…`. Raises Rejected.

    Measured with an unknown name among them: an error, the list is shown as before, and the known
    ones are applied all the same.
    """
    group = state.partitions.get(name)
    if group is None:
        raise Rejected("slurm_update error: Invalid partition name specified")
    known = tuple(node for node in nodes if node in state.nodes)
    _give(state, group, known)
    if len(known) < len(nodes):
        raise Rejected("slurm_update error: Invalid node name specified")
    group.listed = known


def read_configuration(state: State) -> None:
    """slurm.conf is read again: every edit of a node list is gone, without a word."""
    for group in state.partitions.values():
        if (group.nodes, group.listed) != (group.configured, group.configured):
            _give(state, group, group.configured)
            group.listed = group.configured
            state.happened("partition edit gone", group.name, "slurm.conf was read again")


def _give(state: State, group: PartitionRecord, nodes: tuple[NodeName, ...]) -> None:
    """The partition has exactly these nodes; jobs on others go on."""
    for name in group.nodes:
        state.nodes[name].partitions -= {group.name}
    for name in nodes:
        state.nodes[name].partitions |= {group.name}
    group.nodes, state.unsettled = nodes, True
