"""Roles as a file writes them; turned into the words of decisions (`config.permissions`)."""

from typing import Annotated

from pydantic import Field

from config.fields import Count, Key, Nodes, Section, Truth
from config.permissions import Grant, Permission, Role, Scope


class GrantEntry(Section):
    """Some permissions, and how far they reach; without a limit, everywhere."""

    permissions: Annotated[tuple[Permission, ...], Field(min_length=1)]
    """What is permitted; see docs/reference/permissions.md."""
    clusters: Annotated[tuple[Key, ...], Field(min_length=1)] | None = None
    """Only on these clusters. Default: all."""
    partitions: Annotated[tuple[Key, ...], Field(min_length=1)] | None = None
    """Only on nodes of these partitions. Default: all."""
    nodes: Nodes | None = None
    """Only on these nodes, as `gpu-[001-016]`. Default: all."""
    own_jobs: Truth = False
    """Only where every job concerned belongs to the person, and nowhere while the cluster shows a job list
    that cannot be believed. Default: false."""
    max_nodes: Count | None = None
    """At most so many nodes in one request, with those that its runbook finds by itself. Default: no
    limit."""

    def grant(self) -> Grant:
        """The same in the words of decisions."""
        scope = Scope(
            clusters=None if self.clusters is None else frozenset(self.clusters),
            partitions=None if self.partitions is None else frozenset(self.partitions),
            nodes=None if self.nodes is None else str(self.nodes),
            own_jobs=self.own_jobs,
            max_nodes=self.max_nodes,
        )
        return Grant(permissions=frozenset(self.permissions), scope=scope)


class RoleEntry(Section):
    """A named list of grants."""

    help: str
    """One sentence: who holds it and what for."""
    grants: Annotated[tuple[GrantEntry, ...], Field(min_length=1)]
    """What it allows."""

    def role(self, name: str) -> Role:
        """The same in the words of decisions."""
        return Role(name=name, grants=tuple(entry.grant() for entry in self.grants))
