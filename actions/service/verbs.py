"""`service.start` and `service.restart`, and their list for `actions.catalogue`.

Called by the engine. Each makes one command on one node and is done only when the unit was read
back as active with a process. It must never report a time-out as a failure: the start may go on.
"""

from dataclasses import dataclass, replace
from datetime import timedelta

from actions.cluster import NodeBase
from actions.contract import (
    Action,
    ActionSpec,
    Call,
    Done,
    Failed,
    FailureKind,
    Field,
    Observation,
    Outcome,
    Refusal,
    Standing,
    Unknown,
    Unreadable,
    ValueType,
)
from actions.ownership import our_marks
from actions.remote_values import CommandResult, Service, ServiceState
from actions.service import rules
from actions.service.readings import (
    Seen,
    boot_of,
    clock_offset,
    facts_of,
    fresh_node,
    read,
    target,
    unit_of,
)
from actions.service.settings import Hands
from actions.settling import saved_at
from config.json_values import JsonMap
from config.permissions import Permission

_LOCK_HELD = 75
"""What the node answers when another start or restart holds its lock."""

_START = ActionSpec(
    name="service.start",
    version=1,
    summary="Start a stopped service on a node",
    permission=Permission.SERVICE_START,
    parameters={
        "node": Field(type=ValueType.NODE, help="node as the cluster names it"),
        "unit": Field(type=ValueType.UNIT, help="unit from the list of the configuration"),
    },
    output={
        "state": Field(type=ValueType.TEXT, help="state after the start"),
        "main_pid": Field(type=ValueType.NUMBER, help="its main process"),
        "since": Field(type=ValueType.TEXT, help="since when, by the node's clock"),
        "before": Field(type=ValueType.TEXT, help="state that was found"),
    },
    # Reading, connecting, the node's own limit of a minute and the kill after it, one after the
    # other: past this the command is certainly dead.
    time_limit=timedelta(seconds=120),
)
_RESTART = replace(
    _START,
    name="service.restart",
    summary="Restart a service on a node; refused where that could end a job",
    permission=Permission.SERVICE_RESTART,
)


def actions(hands: Hands) -> tuple[Action, ...]:
    """Every verb on services, over these hands."""
    return (Start(hands), Restart(hands))


@dataclass(frozen=True, slots=True)
class Start:
    """`systemctl start`."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _START

    def look(self, call: Call) -> Observation:
        """Whether the unit runs already. Raises Unreadable, Refusal."""
        started = self._started(call) if call.intended_at is not None else None
        if started is not None:
            return started
        seen = read(call, self.hands)
        if seen.blocked:
            return _observation(seen, Standing.BLOCKED, seen.blocked)
        if call.attempt:  # the look of a plan comes before the drain that is part of it
            _insist_on_drain(call, self.hands, seen.service.unit)
        service = seen.service
        why = f"{rules.state_text(service)} on {target(call)}"
        if service.state is ServiceState.ACTIVE:
            ours = rules.began_after_intent(service, call, seen.offset_ms)
            return _observation(
                seen,
                Standing.OURS if ours else Standing.FOREIGN,
                f"{service.unit} is already running{rules.since_text(service)}",
            )
        cannot = rules.cannot_start(service)
        return _observation(seen, Standing.BLOCKED if cannot else Standing.NOT_SO, cannot or why)

    def _started(self, call: Call) -> Observation | None:
        """In a recovery: a unit that runs ends the question at once, whoever holds the node by now and
        whatever slurmctld says; a start of ours that is still on its way changes nothing then.
        """
        unit, node = unit_of(call, self.hands), target(call)
        service = self.hands.nodes.service(node, unit)
        if not rules.running(service):
            return None
        facts = facts_of(node, self.hands)
        ours = rules.began_after_intent(service, call, clock_offset(facts))
        return Observation(
            standing=Standing.OURS if ours else Standing.FOREIGN,
            why=f"{unit} runs{rules.since_text(service)}",
            boot_id=boot_of(facts),
            state=rules.state_text(service),
        )

    def do(self, call: Call) -> Outcome:
        """Start it and read back."""
        try:
            unit, node = unit_of(call, self.hands), target(call)
            before = self.hands.nodes.service(node, unit)
            if before.state is ServiceState.ACTIVE:
                return Done(output=_output(before, before))
            _insist_on_drain(call, self.hands, unit)
            cannot = rules.cannot_start(before)
            if cannot:
                lasting = before.state is ServiceState.NOT_FOUND
                kind = FailureKind.PERMANENT if lasting else FailureKind.RETRYABLE
                return Failed(error=f"nothing was done: {cannot}", kind=kind)
            result = self.hands.nodes.start_service(node, unit, call.effect_id)
            return _outcome(call, self.hands, before, result)
        except Refusal as error:
            return Failed(error=str(error), kind=FailureKind.REFUSED)
        except Unreadable as error:
            return Failed(error=f"nothing was done: {error}", kind=FailureKind.RETRYABLE)


@dataclass(frozen=True, slots=True)
class Restart:
    """`systemctl restart`."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _RESTART

    def look(self, call: Call) -> Observation:
        """Whether a restart is safe, or has happened since the intent. Raises Unreadable, Refusal."""
        seen = read(call, self.hands)
        service = seen.service
        if rules.running(service) and rules.began_after_intent(service, call, seen.offset_ms):
            why = f"{service.unit} was restarted{rules.since_text(service)}"
            return _observation(seen, Standing.OURS, why)
        cannot = seen.blocked or rules.cannot_restart(seen.for_restart(self.hands))
        if call.attempt and not cannot:
            _insist_on_drain(call, self.hands, service.unit)
        why = cannot or f"{rules.state_text(service)} on {target(call)}"
        return _observation(seen, Standing.BLOCKED if cannot else Standing.NOT_SO, why)

    def do(self, call: Call) -> Outcome:
        """Look once more whether it is safe, restart, read back."""
        try:
            seen = read(call, self.hands)
            cannot = seen.blocked or rules.cannot_restart(seen.for_restart(self.hands))
            if cannot:
                return Failed(error=f"nothing was done: {cannot}", kind=FailureKind.REFUSED)
            node, unit = target(call), seen.service.unit
            _insist_on_drain(call, self.hands, unit)
            result = self.hands.nodes.restart_service(node, unit, call.effect_id)
            return _outcome(call, self.hands, seen.service, result)
        except Refusal as error:
            return Failed(error=str(error), kind=FailureKind.REFUSED)
        except Unreadable as error:
            return Failed(error=f"nothing was done: {error}", kind=FailureKind.RETRYABLE)


def _insist_on_drain(call: Call, hands: Hands, unit: str) -> None:
    """A DOWN node is IDLE as soon as its slurmd registers (ReturnToService), unless it is drained:
    read again right before the start, and only once slurmctld has saved the drain (hands 1, 2).
    Raises Unreadable, Refusal.
    """
    if unit != hands.settings.slurmd_unit:
        return
    node = fresh_node(call, hands)
    if node.base is not NodeBase.DOWN:
        return
    if not node.draining:
        raise Refusal(
            f"nothing was done: {node.name} is DOWN and not drained, so that Slurm would give it "
            "back to service unseen"
        )
    marks = our_marks(call, node.name)
    until = saved_at(marks[0], call.now) if marks else None
    if until is not None:
        raise Unreadable(
            f"slurmctld may not have saved the drain of {node.name} before {until:%H:%M:%S} UTC"
        )


def _outcome(call: Call, hands: Hands, before: Service, result: CommandResult) -> Outcome:
    """What the command and the reading after it say together. Never raises Unreadable."""
    node, unit = target(call), before.unit
    if result.exit_code is None:
        return Unknown(why=f"no result from {node}: {result.lost[:200]}")
    if result.exit_code == _LOCK_HELD:
        return Failed(
            error=f"another start or restart of {unit} is under way on {node}",
            kind=FailureKind.RETRYABLE,
        )
    try:
        after = hands.nodes.service(node, unit)
    except Unreadable as error:
        return Unknown(why=f"{unit} on {node} could not be read back: {error}")
    return _judged(node, before, after, result)


def _judged(node: str, before: Service, after: Service, result: CommandResult) -> Outcome:
    said = (result.errors.strip() or result.output.strip() or after.detail)[:300]
    if after.state is ServiceState.UNKNOWN:
        return Unknown(why=f"{after.unit} on {node} could not be read back: {after.detail[:200]}")
    if after.state in {ServiceState.ACTIVATING, ServiceState.DEACTIVATING, ServiceState.RELOADING}:
        return Unknown(why=f"{after.unit} on {node} is still {after.state}")
    if not result.ok:
        return Failed(
            error=f"{after.unit} on {node} is {after.state}; systemctl said "
            f"(exit code {result.exit_code}): {said}",
            kind=FailureKind.PERMANENT,
        )
    if rules.running(after):
        return Done(output=_output(before, after))
    return Failed(
        error=f"{after.unit} on {node} was started and is {after.state} now: {said}",
        kind=FailureKind.PERMANENT,
    )


def _observation(seen: Seen, standing: Standing, why: str) -> Observation:
    return Observation(
        standing=standing,
        why=why,
        boot_id=boot_of(seen.facts),
        owner=seen.holding.owner,
        state=rules.state_text(seen.service),
        facts={"reach": seen.reach.reach.value, "evidence": seen.reach.evidence[:200]},
    )


def _output(before: Service, after: Service) -> JsonMap:
    return {
        "state": after.state.value,
        "main_pid": after.main_pid,
        "since": f"{after.since:%Y-%m-%dT%H:%M:%SZ}" if after.since else "",
        "before": rules.state_text(before),
    }
