"""Nodes as `scontrol show node` tells them, from JSON or text, as `actions.cluster.Node`. Pure.

A record that cannot be read, or that holds a field twice, becomes a node with base OTHER and the
flag UNREADABLE: the rest of the cluster stays visible, and nothing acts on that one node.
"""

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from actions.cluster import Node, NodeBase
from actions.slurm.fields import (
    JsonObject,
    UnknownForm,
    bare,
    gpu_count,
    moment,
    moment_of,
    number,
    number_of,
    split_words,
    text_of,
    words_of,
)
from actions.slurm.records import shown_fields, shown_records
from config.node_names import NodeName, NodeNameError, node_name

UNREADABLE = "UNREADABLE"
"""Flag of ours, unknown to Slurm, so that `Node.unknown_flags` shows it."""

_WRITER = re.compile(
    r" \[([^\[\]@]*)@(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|Unknown)\](?=\n|\Z)", re.ASCII
)
_NAME = re.compile(r"NodeName=(\S+)")
_OLD_WORDS = {"DRAINED": "DRAIN", "DRAINING": "DRAIN", "MAINT": "MAINTENANCE"}
_SHOWN = 200
_Record = TypeVar("_Record")


def nodes_from_json(records: Iterable[JsonObject]) -> dict[NodeName, Node]:
    """The nodes of a JSON answer, by name."""
    return by_name(((named(text_of(record, "name")), record) for record in records), _from_json)


def nodes_from_text(answer: str) -> dict[NodeName, Node]:
    """The nodes of a text answer, by name."""
    found = []
    for record in shown_records(answer, "NodeName"):
        match = _NAME.match(record)
        found.append((named(match[1] if match else ""), record))
    return by_name(found, _from_text)


def by_name(
    records: Iterable[tuple[NodeName, _Record]], read: Callable[[_Record], Node]
) -> dict[NodeName, Node]:
    """Each node once, those that cannot be read among them."""
    nodes: dict[NodeName, Node] = {}
    for name, record in records:
        if name in nodes:
            raise UnknownForm(f"node {name} occurs twice in one answer")
        try:
            nodes[name] = read(record)
        except UnknownForm as error:
            nodes[name] = _unreadable(name, str(error))
    return nodes


def named(text: str) -> NodeName:
    """The name of a record. Raises UnknownForm."""
    try:
        return node_name(text)
    except NodeNameError as error:
        raise UnknownForm(f"a node record without a usable name: {error}") from error


def _unreadable(name: NodeName, why: str) -> Node:
    return Node(
        name=name,
        base=NodeBase.OTHER,
        flags=frozenset({UNREADABLE}),
        reason=f"its record cannot be read: {why}"[:_SHOWN],
    )


def state_of_node(words: tuple[str, ...]) -> tuple[NodeBase, frozenset[str]]:
    """Base and flags; an unknown base stays visible as a flag."""
    if not words:
        raise UnknownForm("a node without a state")
    upper = [word.upper() for word in words]
    base = upper[0]
    flags = frozenset(_OLD_WORDS.get(word, word) for word in upper[1:])
    if base in NodeBase.__members__ and base != NodeBase.OTHER:
        return NodeBase(base), flags
    return NodeBase.OTHER, flags | {base}


def _from_json(record: JsonObject) -> Node:
    base, flags = state_of_node(words_of(record, "state") + words_of(record, "state_flags"))
    reason = text_of(record, "reason")
    gres = bare(text_of(record, "gres"))
    used = record.get("gres_used")
    return Node(
        name=named(text_of(record, "name")),
        base=base,
        flags=flags,
        reason=reason,
        reason_by=text_of(record, "reason_set_by_user") if reason else "",
        reason_at=moment_of(record, "reason_changed_at") if reason else None,
        boot_time=moment_of(record, "boot_time"),
        slurmd_started_at=moment_of(record, "slurmd_start_time"),
        partitions=frozenset(words_of(record, "partitions")),
        features=frozenset(words_of(record, "active_features")),
        gres=gres,
        gpus=gpu_count(gres),
        gpus_used=gpu_count(used) if isinstance(used, str) else None,
        cpus=number_of(record, "cpus") or 0,
        cpus_allocated=number_of(record, "alloc_cpus") or 0,
        memory_mib=number_of(record, "real_memory") or 0,
        tres_allocated=bare(text_of(record, "tres_used")),
        address=text_of(record, "address"),
        version=text_of(record, "version") or text_of(record, "slurmd_version"),
    )


def _from_text(record: str) -> Node:
    fields = shown_fields(record)
    missing = {"NodeName", "State", "CPUAlloc", "CPUTot", "RealMemory"} - fields.keys()
    if missing:
        raise UnknownForm(f"a node record without {', '.join(sorted(missing))}")
    base, flags = state_of_node(tuple(fields["State"].split("+")))
    reason, reason_by, reason_at = _reason(fields.get("Reason", ""))
    gres = bare(fields.get("Gres", ""))
    used = fields.get("GresUsed")
    return Node(
        name=named(fields["NodeName"]),
        base=base,
        flags=flags,
        reason=reason,
        reason_by=reason_by,
        reason_at=moment(reason_at),
        boot_time=moment(fields.get("BootTime", "")),
        slurmd_started_at=moment(fields.get("SlurmdStartTime", "")),
        partitions=frozenset(split_words(fields.get("Partitions", ""))),
        features=frozenset(split_words(fields.get("ActiveFeatures", ""))),
        gres=gres,
        gpus=gpu_count(gres),
        gpus_used=None if used is None else gpu_count(used),
        cpus=number(fields["CPUTot"], "CPUTot"),
        cpus_allocated=number(fields["CPUAlloc"], "CPUAlloc"),
        memory_mib=number(fields["RealMemory"], "RealMemory"),
        tres_allocated=bare(fields.get("AllocTRES", "")),
        address=fields.get("NodeAddr", ""),
        version=fields.get("Version", ""),
    )


def _reason(text: str) -> tuple[str, str, str]:
    """Reason, its writer and the time, which scontrol appends to the first line."""
    found = _WRITER.search(text)
    if found is None:
        return text, "", ""
    return text[: found.start()] + text[found.end() :], found[1], found[2]
