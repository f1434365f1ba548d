"""Which records concern which node, when a record names several at once. A projection for searching.

A record's own `node` is a column of the ledger; this adds the nodes of `data.nodes`, so that "who
touched gpu-042 last week" also finds the drain of `gpu-[040-049]` and the refusal of it.
"""

from collections.abc import Sequence

from audit_log.projections import ProjectionCursor
from audit_log.records import Record
from config.json_values import Json
from config.node_names import NodeNameError, expand_unchecked


class TargetsProjector:
    """One row per node and record."""

    schema = """
    CREATE TABLE IF NOT EXISTS ledger_targets (
      node TEXT NOT NULL,
      seq INTEGER NOT NULL,
      PRIMARY KEY (node, seq)
    ) STRICT, WITHOUT ROWID;
    """
    tables = ("ledger_targets",)

    def apply(self, cursor: ProjectionCursor, record: Record) -> None:
        """Take one record in."""
        for node in _nodes(record.event.data.get("nodes")):
            if node != record.event.node:
                cursor.execute(
                    "INSERT OR IGNORE INTO ledger_targets VALUES (?, ?)", (node, record.seq)
                )


def _nodes(value: Json) -> list[str]:
    """The node names in a list or a folded expression; none in anything else."""
    if isinstance(value, str) and value:
        try:
            return list(expand_unchecked(value))
        except NodeNameError:
            return []
    if isinstance(value, Sequence) and not isinstance(value, str):
        names = [name for name in value if isinstance(name, str)]
        # A list of many nodes is recorded folded (`runbooks.packing`).
        return [node for name in names for node in (_nodes(name) if "[" in name else [name])]
    return []
