"""What a request gives a runbook: words become parameters of their declared types.

Called by the desk. Every node that any parameter names is resolved against the inventory and counts
among the nodes of the request, whatever the parameter is called: the gate is asked about all of them.
"""

import re
from collections.abc import Iterable

from actions.contract import ValueType
from bot.inventory import Inventory
from config.ids import ClusterName
from config.json_values import Json
from config.node_names import NodeSet
from runbooks.model import Parameter, Runbook
from runbooks.requests import CannotDo
from runbooks.values import nodes_in, settle

_NAMED = re.compile(r"[a-z][a-z0-9_]*=", re.ASCII)
"""A parameter by name; anything else with `=` in it is read as nodes, and refused as such."""
_NUMBER = re.compile(r"-?\d{1,15}", re.ASCII)
"""What a record can hold as a whole number."""
_OF_NODES = frozenset({ValueType.NODE, ValueType.NODES})


def parameters(
    inventory: Inventory, runbook: Runbook, words: Iterable[str], cluster: str | None
) -> tuple[ClusterName, NodeSet, dict[str, Json]]:
    """Nodes from the plain words, the others as NAME=VALUE; the cluster, every node, and the values.

    Raises NodeNameError, CannotDo, ParameterError.
    """
    found = list(words)
    plain = [word for word in found if not _NAMED.match(word)]
    named = dict(word.split("=", 1) for word in found if _NAMED.match(word))
    target = next((entry for entry in runbook.parameters if entry.type in _OF_NODES), None)
    nodes, values = NodeSet(), dict[str, Json]()
    if target is not None:
        if plain and target.name in named:
            raise CannotDo(f"the nodes are given twice, also as {target.name}=: give them once")
        if target.name in named:
            plain = [named.pop(target.name)]
        where, nodes = inventory.resolve(",".join(plain), cluster)
        values[target.name] = _nodes(runbook, target, nodes)
    elif plain:
        raise CannotDo(f"{runbook.name} takes no nodes; write its parameters as NAME=VALUE")
    else:
        where = inventory.cluster(cluster)
    for name, text in named.items():
        values[name] = _value(inventory, runbook, where, (name, text))
    settled = settle(runbook, values)
    others = {entry.name: entry.type for entry in runbook.parameters if entry is not target}
    beside = nodes_in(others, settled)
    return where, NodeSet.of((*nodes, *beside)) if beside else nodes, dict(settled)


def _nodes(runbook: Runbook, parameter: Parameter, nodes: NodeSet) -> Json:
    """The value of a parameter that takes nodes. Raises CannotDo."""
    if parameter.type is ValueType.NODES:
        return list(nodes)
    if len(nodes) != 1:
        raise CannotDo(
            f"{runbook.name} works on one node, {nodes} are {len(nodes)}: run it for each"
        )
    return nodes.names[0]


def _value(
    inventory: Inventory, runbook: Runbook, where: ClusterName, given: tuple[str, str]
) -> Json:
    """A parameter from text, by its declared type. Raises CannotDo, NodeNameError."""
    name, text = given
    parameter = runbook.parameter(name)
    if parameter is None:
        known = ", ".join(entry.name for entry in runbook.parameters)
        raise CannotDo(f"{runbook.name} has no parameter {name!r}; it has {known}")
    if parameter.type in _OF_NODES:
        nodes = inventory.resolve(text, where)[1]
        if parameter.type is ValueType.NODE and len(nodes) != 1:
            raise CannotDo(f"{name} is one node, {nodes} are {len(nodes)}")
        return _nodes(runbook, parameter, nodes)
    if parameter.type is ValueType.NUMBER:
        if not _NUMBER.fullmatch(text):
            raise CannotDo(f"{name} is a whole number, not {text!r}")
        return int(text)
    if parameter.type is ValueType.TRUTH:
        if text not in {"true", "false"}:
            raise CannotDo(f"{name} is true or false, not {text!r}")
        return text == "true"
    return text
