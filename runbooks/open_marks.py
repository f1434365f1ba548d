"""The ledger's open marks: what this bot put on which node, in which run.

Read by the engine for each call, and by the answers at the doors. Writes nothing.
"""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from actions.contract import Mark
from config.clock import from_microseconds
from config.ids import ClusterName, RunId
from config.node_names import NodeName

Query = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]
"""`query` of the ledger or of a transaction."""

RESERVATION = "reservation"
_COLUMNS = "node, kind, run, boot_id, text, at_us"


def marks_on(
    query: Query, cluster: ClusterName, nodes: Collection[NodeName | None]
) -> tuple[Mark, ...]:
    """Those on these nodes, and every reservation of ours: which nodes one holds, the cluster tells."""
    sql = (
        f"SELECT {_COLUMNS} FROM marks WHERE cluster = ? "  # noqa: S608
        "AND (kind = ? OR node IN (SELECT value FROM json_each(?)))"
    )
    return tuple(_marks(cluster, query(sql, (cluster, RESERVATION, json.dumps(list(nodes))))))


def all_marks(query: Query, cluster: ClusterName) -> tuple[Mark, ...]:
    """Every open mark of ours in the cluster."""
    sql = f"SELECT {_COLUMNS} FROM marks WHERE cluster = ?"  # noqa: S608
    return tuple(_marks(cluster, query(sql, (cluster,))))


def marks_of(
    query: Query, cluster: ClusterName
) -> Callable[[Collection[NodeName | None]], tuple[Mark, ...]]:
    """What `marks_on` would give for any nodes of the cluster, read once."""
    on_nodes: dict[NodeName | None, tuple[Mark, ...]] = {}
    reservations: tuple[Mark, ...] = ()
    for mark in all_marks(query, cluster):
        if mark.kind == RESERVATION:
            reservations = (*reservations, mark)
        else:
            on_nodes[mark.node] = (*on_nodes.get(mark.node, ()), mark)
    return lambda nodes: (
        *(mark for node in nodes for mark in on_nodes.get(node, ())),
        *reservations,
    )


def _marks(cluster: ClusterName, rows: Iterable[tuple[Any, ...]]) -> Iterable[Mark]:
    return (
        Mark(
            kind=kind,
            cluster=cluster,
            node=NodeName(node),
            run=RunId(run),
            boot_id=boot,
            text=text,
            at=from_microseconds(at),
        )
        for node, kind, run, boot, text, at in rows
    )
