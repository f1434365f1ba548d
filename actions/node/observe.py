"""`node.observe`: the facts about one node from which its cause is diagnosed.

Called by the engine. Changes nothing. What could not be read is null, and never a guess: a
condition over null matches no cause. The values are put together in `actions.node.facts`.
"""

from dataclasses import dataclass
from datetime import timedelta

from actions.contract import (
    ActionSpec,
    Call,
    Done,
    Failed,
    FailureKind,
    Observation,
    Outcome,
    Refusal,
    Standing,
    Unknown,
    Unreadable,
    Wait,
)
from actions.host_look import Eyes, look
from actions.host_verdict import HostVerdict
from actions.node import readings
from actions.node.facts import FACTS, Seen, flat
from actions.node.settings import NODE, Hands
from actions.remote_values import Reach, Service, ServiceState
from actions.settling import just_started, settles_at
from config.permissions import Permission

_TRY_AGAIN = timedelta(seconds=30)

_SPEC = ActionSpec(
    name="node.observe",
    version=1,
    summary="Read everything about a node that its diagnosis needs",
    permission=Permission.NODE_READ,
    parameters={"node": NODE},
    output=FACTS,
    looks_only=True,
    time_limit=timedelta(minutes=3),
)

_MUNGE = "munge"


@dataclass(frozen=True, slots=True)
class Observe:
    """The verb."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _SPEC

    def look(self, call: Call) -> Observation:
        """The controller's side alone. Raises Unreadable, Refusal."""
        node = readings.fresh_node(call, self.hands)
        return Observation(
            standing=Standing.NOT_SO,
            why=f"{node.name} is {node.state}",
            state=node.state,
            reason=node.reason,
        )

    def do(self, call: Call) -> Outcome:
        """Read all and put it together."""
        try:
            seen = self._seen(call)
        except Unreadable as error:
            return Unknown(why=str(error))
        except Refusal as error:
            return Failed(error=str(error), kind=FailureKind.REFUSED)
        controller, facts = seen.snapshot.controller, flat(seen, call)
        until = settles_at(controller, self.hands.settings.quiet_after_start, call.now)
        if until is not None:  # what a fresh slurmctld says of a node is no finding
            return Wait(until=until, why=just_started(controller, until), seen=facts)
        if seen.verdict.host is HostVerdict.CUT_OFF:  # no diagnosis; who is on call is paged once
            why = f"no diagnosis of {seen.node.name}: {seen.verdict.why}"
            return Wait(until=call.now + _TRY_AGAIN, why=why, seen=facts)
        return Done(output=facts)

    def _seen(self, call: Call) -> Seen:
        """Raises Unreadable, Refusal."""
        snapshot = readings.cluster_of(call, self.hands).snapshot()
        node = readings.fresh_node(call, self.hands)
        jobs = readings.fresh_jobs(call, self.hands)
        unit, settings = self.hands.settings.slurmd_unit, self.hands.settings
        eyes = Eyes(nodes=self.hands.nodes, vantage=self.hands.vantage)
        reach, verdict = look(eyes, node, snapshot.nodes)
        alive = reach.reach is Reach.ALIVE
        facts = readings.host_facts(call, self.hands) if alive else None
        slurmd = Service(unit=unit, state=ServiceState.UNKNOWN)
        if alive:
            slurmd = self.hands.nodes.service(node.name, unit)
        # Asked only where it could be the cause: slurmd runs and the controller does not hear it (A14).
        deaf = alive and not node.responding and slurmd.state is ServiceState.ACTIVE
        munge = self.hands.nodes.service(node.name, _MUNGE) if deaf else None
        return Seen(
            snapshot=snapshot,
            node=node,
            jobs=jobs,
            reach=reach,
            verdict=verdict,
            facts=facts,
            slurmd=slurmd,
            munge=munge,
            pool=settings.pool(call.cluster, node.name),
            hands_off=settings.hands_off(call.cluster, node.name),
        )
