"""What may be permitted, to whom, where: the words of every decision about rights."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from config.ids import ClusterName
from config.node_names import NodeName, NodeSet


class Permission(StrEnum):
    """Each thing that a role can allow. A new one: see CONTRIBUTING, "to add a permission"."""

    NODE_READ = "node.read"
    """See nodes, jobs and runs."""
    NODE_DRAIN = "node.drain"
    """Take a node out of service; ends no job."""
    NODE_RETURN = "node.return"
    """Give a node that the bot drained back to service, behind its gate."""
    NODE_REPAIR = "node.repair"
    """Run a repair runbook such as node-dropped."""
    RESERVATION_HOLD = "reservation.hold"
    """Make, change and take away reservations of the bot: they keep others off nodes, and end no job."""
    SERVICE_START = "service.start"
    """Start a stopped service on a node."""
    SERVICE_RESTART = "service.restart"
    """Restart a running service on a node."""
    NODE_REBOOT = "node.reboot"
    """Restart a node that the bot drained, by `scontrol reboot`; ends no job."""
    PARTITION_WRITE = "partition.write"
    """Give a partition another list of nodes, until slurm.conf follows."""
    NODE_POWER = "node.power"
    """Take a machine's power away or give it, through its BMC; two persons approve each plan."""
    JOB_REQUEUE = "job.requeue"
    """Have a job started again: its present run ends, its nodes are kept for it."""
    RUN_APPROVE = "run.approve"
    """Approve or deny somebody else's plan."""
    RUN_CONTROL = "run.control"
    """Abort, pause, resume, take over a run; say what happened when it needs a person."""
    PAGE_SEND = "page.send"
    """Page the people on call."""
    HALT_SET = "halt.set"
    """Stop every new effect."""
    HALT_CLEAR = "halt.clear"
    """Resume after a halt or a latched limit."""
    HANDS_OFF_SET = "hands_off.set"
    """Label nodes that no runbook may touch, or take the label away."""
    BREAK_GLASS = "break_glass"
    """Act without the approvals that a plan needs, with a reason; pages the approvers."""
    RUNBOOK_RELEASE = "runbook.release"
    """Release a new version of a runbook or causes file."""
    AUDIT_READ = "audit.read"
    """Query, export and verify the audit log."""
    AUDIT_MANAGE = "audit.manage"
    """Anchor, rebuild, back up and restore the audit log; confirm runs after a restore."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What an action would touch. An empty node set means that no node is touched."""

    cluster: ClusterName | None = None
    nodes: NodeSet = field(default_factory=NodeSet)
    partitions: Mapping[NodeName, frozenset[str]] = field(default_factory=dict)
    """Partitions of each node, as the inventory knows them."""
    job_owners: frozenset[str] = frozenset()
    """OS user names that own the jobs concerned (for `own_jobs`)."""
    in_request: int = 0
    """Nodes of the whole request, where the question is about some of them (for `max_nodes`)."""
    blind: str = ""
    """Why `job_owners` cannot be believed; empty when they can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Where a grant reaches; None means no limit of that kind."""

    clusters: frozenset[str] | None = None
    partitions: frozenset[str] | None = None
    nodes: str | None = None
    """A node expression, expanded against the inventory when a decision is made."""
    own_jobs: bool = False
    """Only where every job concerned belongs to the actor."""
    max_nodes: int | None = None
    """At most so many nodes in one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """One line of a role: these permissions, there."""

    permissions: frozenset[Permission]
    scope: Scope = Scope()


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A named list of grants."""

    name: str
    grants: tuple[Grant, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """Yes, and by which role."""

    role: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """No; `because` is a sentence for a person, `enough` names roles that would suffice."""

    missing: Permission
    because: str
    enough: tuple[str, ...] = ()


Decision = Allowed | Denied
