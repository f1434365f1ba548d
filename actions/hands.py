"""The hands that actions work with: Protocols of a workload manager, its nodes, canaries and pagers.

`actions.catalogue` passes them in; areas implement them (`actions.slurm`, `actions.remote`,
`actions.simulated`, `actions.canary`, `actions.page`) and never import one another. The errors they
raise are in `actions.contract`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from actions.cluster import (
    Job,
    JobChange,
    Node,
    Partition,
    Reservation,
    ReservationWish,
    Snapshot,
)
from actions.remote_values import BootId, CommandResult, HostFacts, Reachability, Service
from config.ids import ClusterName, JobId
from config.node_names import NodeName


class ClusterHands(Protocol):
    """A workload manager. Implemented by `actions.slurm` and `actions.simulated`.

    Every method raises Unreadable when the controller does not answer in time, answers for another
    cluster, or in a form this version does not know. Writes raise WriteUnknown when they may have
    happened.
    """

    @property
    def name(self) -> ClusterName:
        """The cluster, compared with each answer before a write."""
        ...

    def snapshot(self) -> Snapshot:
        """Nodes, jobs, partitions, reservations; shared by all readers, at most 15 s old (hands 1)."""
        ...

    def fresh_node(self, node: NodeName) -> Node:
        """This node now, past any cache. Raises UnknownNode."""
        ...

    def fresh_jobs(self, node: NodeName) -> tuple[Job, ...]:
        """Jobs on this node now, past any cache; raises Refusal when the list proves to be blind."""
        ...

    def drain(self, node: NodeName, reason: str) -> None:
        """Set DRAIN with this Reason: one update, no read-back."""
        ...

    def resume(self, node: NodeName) -> None:
        """Clear DRAIN: one update, no read-back. Raises Rejected with the controller's words."""
        ...


class NodeChanges(Protocol):
    """Further writes on nodes and partitions; the same object as the ClusterHands, the same errors."""

    def down(self, node: NodeName, reason: str) -> None:
        """Set DOWN with this Reason: ends every job on it, at once. One update, no read-back."""
        ...

    def reboot(self, node: NodeName) -> None:
        """Plain `scontrol reboot`, without ASAP and nextstate: both would lift a drain (hands 2)."""
        ...

    def fresh_partition(self, name: str) -> Partition:
        """This partition now, past any cache. Raises Refusal where there is none of that name."""
        ...

    def set_partition_nodes(self, partition: str, nodes: Sequence[NodeName]) -> None:
        """Write the full list of a partition's nodes: gone after a reconfigure (hands 2)."""
        ...


class JobHands(Protocol):
    """Jobs and reservations, one at a time; the same object as the ClusterHands, the same errors."""

    def fresh_job(self, job: JobId) -> Job:
        """This one job (array task, het part) now, past any cache. Raises UnknownJob."""
        ...

    def fresh_reservations(self) -> tuple[Reservation, ...]:
        """All reservations now, past any cache."""
        ...

    def create_reservation(self, wish: ReservationWish) -> None:
        """Make it, from now on: one write, no read-back."""
        ...

    def set_reservation_nodes(self, name: str, nodes: Sequence[NodeName]) -> None:
        """Give a reservation exactly these nodes: one update, no read-back."""
        ...

    def delete_reservation(self, name: str) -> None:
        """Delete it. Slurm refuses while a job points to it: Rejected with its words."""
        ...

    def requeue(self, jobs: Sequence[JobId]) -> None:
        """`scontrol requeue Incomplete` with these explicit ids: what has ended stays ended (hands 3)."""
        ...

    def change_job(self, job: JobId, change: JobChange) -> None:
        """One update of one job, no read-back."""
        ...


class CanaryWord(StrEnum):
    """How far a canary has come."""

    NONE = "none"
    """Nothing of that name is known (any more)."""
    PENDING = "pending"
    RUNNING = "running"
    PASSED = "passed"
    """It ran on that node and ended with code 0."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A canary as it is seen now."""

    word: CanaryWord
    why: str = ""
    """State and exit code as the workload manager tells them."""
    lines: str = ""
    """The last lines of its output, from outside; empty where they cannot be read."""


class CanaryHands(Protocol):
    """A small job of the site that tries one node, run as the site's unprivileged canary account.

    `effect_id` is carried by the job itself, so that it is found after a crash and not started twice.
    Every method raises Unreadable when there is no answer; `start` and `end` raise WriteUnknown when
    they may have happened, and Rejected with the words of whoever said no.
    """

    def start(self, node: NodeName, reservation: str, effect_id: str) -> None:
        """Submit it for exactly this node, inside this reservation: one write."""
        ...

    def state(self, effect_id: str) -> Canary:
        """How far it has come."""
        ...

    def end(self, effect_id: str) -> None:
        """End it if it has not ended: one write."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenReason:
    """A Reason that somebody gave a node, as the accounting remembers it."""

    reason: str
    """Of two writes in one second slurmdbd keeps the last text beside the first writer."""
    by: str
    at: datetime


class ReasonHistory(Protocol):
    """What Reasons a node was given, past the one that it shows now.

    Slurm's node record holds only the last one, so that a text written between our last look and
    our write is seen only here (with slurmdbd: `sacctmgr show event`; and in the simulation).
    """

    def written_since(self, node: NodeName, moment: datetime) -> Sequence[WrittenReason]:
        """Reasons given at `moment` or later, the oldest first. Raises Unreadable."""
        ...


class NodeHands(Protocol):
    """Commands on nodes. Implemented by `actions.remote` and `actions.simulated`."""

    def reach(self, node: NodeName) -> Reachability:
        """Whether the host answers, and how (hands 2)."""
        ...

    def host_facts(self, node: NodeName) -> HostFacts:
        """What the node says of itself. Raises Unreadable when it gives no answer."""
        ...

    def boot_ids(self, nodes: Sequence[NodeName]) -> Mapping[NodeName, BootId]:
        """Which boot each of them is in, fanned out and capped; who gives no answer says why."""
        ...

    def service(self, node: NodeName, unit: str) -> Service:
        """State of one unit; ServiceState.UNKNOWN when the node gives no answer."""
        ...

    def start_service(self, node: NodeName, unit: str, effect_id: str) -> CommandResult:
        """`systemctl start`, under a time limit and a lock on the node."""
        ...

    def restart_service(self, node: NodeName, unit: str, effect_id: str) -> CommandResult:
        """`systemctl restart`, likewise."""
        ...

    def kernel_log(self, node: NodeName, previous_boot: bool) -> CommandResult:
        """The kernel's log of this boot or the one before, capped."""
        ...

    def run(
        self, nodes: Sequence[NodeName], command: Sequence[str], time_limit: timedelta
    ) -> Mapping[NodeName, CommandResult]:
        """One allow-listed read-only command on many nodes, fanned out and capped (design 7)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Something that must wake a person."""

    key: str
    """Stable: the same trouble has the same key; the receiver merges repeats."""
    summary: str
    """One line, at most 200 characters, already redacted."""
    details: Mapping[str, str] = field(default_factory=dict)
    severity: str = "critical"
    resolved: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PageReceipt:
    """What a back end said: accepted is not delivered."""

    backend: str
    accepted: bool
    detail: str
    unknown: bool = False
    """No answer that can be believed: it may have gone out all the same."""


class Pager(Protocol):
    """A chain of back ends. Implemented by `actions.page`."""

    def send(self, page: Page, *, deadline: timedelta) -> tuple[PageReceipt, ...]:
        """Try back ends in order until one accepts; one receipt for each that was tried. Never raises."""
        ...
