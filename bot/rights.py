"""The permission check right before a step acts: the roles of the request, minus what was revoked."""

from dataclasses import replace

from audit_log.gate import Gate, Question
from bot.identities import Identities
from bot.inventory import Inventory
from config.actors import ENGINE, Actor, ActorKind, Door
from config.node_names import NodeSet
from config.permissions import Allowed, Decision, Permission
from runbooks.run import Run


class StepRights:
    """`runbooks.parts.Rights` over the gate."""

    def __init__(self, gate: Gate, identities: Identities, inventory: Inventory) -> None:
        """Asks the gate, which records a denial."""
        self._gate = gate
        self._identities = identities
        self._inventory = inventory

    def step(self, run: Run, permission: Permission, nodes: NodeSet, in_request: int) -> Decision:
        """Whether the run's requester may still do this."""
        if run.requested_by == ENGINE.id:
            return Allowed(role="engine", because="the bot's own duty")
        target = self._inventory.target(run.cluster, nodes)
        question = Question(
            actor=self._requester(run),
            permission=permission,
            target=replace(target, in_request=in_request),
            door=Door(run.door),
            run=run.id,
        )
        return self._gate.check(question)

    def _requester(self, run: Run) -> Actor:
        """The requester with the roles held then and not revoked since (design 5)."""
        then = frozenset(run.roles)
        now = self._identities.by_id(run.requested_by)
        if now is None:
            return Actor(
                id=run.requested_by,
                kind=ActorKind.PERSON,
                name=self._identities.name(run.requested_by),
                roles=frozenset(),
            )
        # A role that a group may still give is kept until Slack has told that group.
        held = then & (now.roles | self._identities.untold_roles())
        return Actor(id=now.id, kind=now.kind, name=now.name, roles=held, shared=now.shared)
