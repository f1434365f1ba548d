"""What the sandbox needs of a cluster, simulated or real: how it looks, what can go wrong on it.

Implemented by `simulated` and `slurm`; used by the panels of the page and by the demo. None of it is
an act of the bot.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class SandboxError(Exception):
    """The sandbox cannot go on; the message says why and what to do."""


class PlugRefused(Exception):
    """This plug cannot be pulled now; the cluster's own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A node as the controller shows it."""

    name: str
    words: tuple[str, ...]
    """Base state first, then the flags."""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job as the controller shows it; the name is its owner's text."""

    id: str
    name: str
    user: str
    nodes: str
    state: str
    restarts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One look at the whole cluster."""

    nodes: tuple[NodeView, ...] = ()
    jobs: tuple[JobView, ...] = ()
    trouble: str = ""
    """Why this look failed; the rest is empty then."""

    def node(self, name: str) -> NodeView | None:
        """The node of that name."""
        return next((node for node in self.nodes if node.name == name), None)

    def job(self, number: str) -> JobView | None:
        """The job with that id."""
        return next((job for job in self.jobs if job.id == number), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class BotSeat:
    """How the bot's process is started for this cluster."""

    command: tuple[str, ...]
    """A Python with our packages, before `-m`; as another user where the cluster wants that."""
    owner: str | None = None
    """OS user of the bot's folder; None is the user of this process."""


class Playground(Protocol):
    """A cluster that may be broken."""

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        ...

    @property
    def cluster(self) -> str:
        """The cluster's own name."""
        ...

    @property
    def node_plugs(self) -> Mapping[str, Callable[[str], None]]:
        """What can be done to one node, by the words on the button."""
        ...

    @property
    def cluster_plugs(self) -> Mapping[str, Callable[[], None]]:
        """What can be done to the cluster."""
        ...

    def view(self) -> View:
        """How it looks now; never raises."""
        ...

    def quiet_for(self) -> float:
        """Seconds for which a bot will not act yet, because the controller has just started."""
        ...

    def settings(self) -> Mapping[str, object]:
        """The cluster's section of the bot's configuration, without pools."""
        ...

    def partitions(self) -> Mapping[str, int]:
        """Partitions and how many nodes each has."""
        ...

    def seat(self) -> BotSeat:
        """How the bot's process is started."""
        ...

    def train(self, nodes: Sequence[str]) -> str:
        """Start a training job on exactly these nodes; its id."""
        ...

    def progress(self, job: str, node: str) -> int | None:
        """The last step that this node wrote for the job; None where jobs write none."""
        ...

    def kill_slurmd(self, node: str) -> None:
        """`kill -9`."""
        ...

    def foreign_drain(self, node: str, reason: str) -> None:
        """A person drains a node."""
        ...

    def stop(self) -> None:
        """End everything that was started for it."""
        ...


def pools(partitions: Mapping[str, int]) -> dict[str, object]:
    """A pool for each partition; a third of it, and at least one node, may be out at once."""
    return {
        name: {"partitions": [name], "max_out": max(1, count // 3)}
        for name, count in partitions.items()
    }


def folder_of_tools() -> str:
    """PATH of everything that the sandbox starts."""
    return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def log_tail(path: Path, lines: int = 8) -> str:
    """The end of a log, for a message; empty where there is none."""
    try:
        text = path.read_text(encoding="utf-8", errors="backslashreplace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
