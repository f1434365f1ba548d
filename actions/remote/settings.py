"""What a site says about reaching its nodes. Made from the configuration by `actions.catalogue`.

Values only. Every unit and every command that may ever run on a node is listed here.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from config.node_access import NodeAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSettings:
    """How the bot reaches nodes and what it may run there."""

    ssh_config: Path
    """An ssh configuration file of its own: user, key, known hosts or host CA, jump hosts. It also
    maps node names to addresses, because a node's name and its host name are two things."""
    units: frozenset[str] = frozenset({"slurmd"})
    """Units whose state may be read and which may be started and restarted."""
    commands: frozenset[tuple[str, ...]] = field(default_factory=frozenset)
    """Whole argument lists that `run` accepts; read-only ones."""
    access: NodeAccess = NodeAccess.PLAIN
    """How what needs root is done."""
    gpu_list: tuple[str, ...] = ("nvidia-smi", "-L")
    """Prints one line per GPU that begins with `GPU `."""
    slurmd: tuple[str, ...] = ("slurmd",)
    fan_out: int = 32
    """Nodes asked at the same time, over all callers."""
    output_cap: int = 1 << 20
    """Bytes kept of each output of each node."""
    connect_limit: timedelta = timedelta(seconds=5)
    read_limit: timedelta = timedelta(seconds=15)
    """For one reading on a node; a visit that collects all facts takes up to three of these."""
    start_limit: timedelta = timedelta(seconds=60)
    """For the start or restart of a unit."""
