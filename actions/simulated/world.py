"""The simulated cluster as a whole: what the bot reads and writes, and what time brings about.

Called by `server` (and directly by tests). Time comes in through `tick`; nothing here reads a clock,
starts a thread or opens a socket. A jump of time gives the same world as many small ones.
"""

import heapq
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from actions.cluster import Job, Node, Reservation, Snapshot
from actions.contract import Refusal, Rejected, UnknownJob, UnknownNode, Unreadable, WriteUnknown
from actions.hands import Canary, WrittenReason
from actions.power_hands import PowerReading
from actions.remote_values import (
    BootId,
    CommandResult,
    HostFacts,
    Reach,
    Reachability,
    Service,
)
from actions.simulated import (
    canary_rules,
    due_rules,
    host_rules,
    node_commands,
    power_rules,
    queue_rules,
    reboot_rules,
    training_rules,
    views,
    write_rules,
)
from actions.simulated.lookups import host_named, job_shown, node_named, unit_name
from actions.simulated.plug_verbs import PLUGS
from actions.simulated.power_rules import PowerVerb
from actions.simulated.slurm_plugs import controller_up
from actions.simulated.state import Due, DueKind, Effect, State
from actions.simulated.writes import (
    Fault,
    FaultKind,
    ForeignAct,
    NoAnswer,
    When,
    Write,
    WriteVerb,
)
from actions.vantage import Tried
from config.ids import JobId
from config.node_names import NodeName

GONE = "Unable to contact slurm controller (connect failure)"
TIMED_OUT = "Unable to contact slurm controller: no answer within {limit:g} s"

EVIDENCE = {
    Reach.ALIVE: "a command ran",
    Reach.REFUSED: "ssh: connect to host {host} port 22: Connection refused",
    Reach.AUTH_FAILED: "{host}: Permission denied (publickey)",
    Reach.HOST_KEY_CHANGED: "REMOTE HOST IDENTIFICATION HAS CHANGED for {host}",
    Reach.NO_SHELL: "{host}: banner received, no shell within the time limit",
    Reach.TIME_OUT: "ssh: connect to host {host} port 22: Connection timed out",
    Reach.NO_ROUTE: "ssh: connect to host {host} port 22: No route to host",
    Reach.NOT_ASKED: "{host} was not asked",
}


_POWER = {
    WriteVerb.POWER_OFF: PowerVerb.OFF,
    WriteVerb.POWER_ON: PowerVerb.ON,
    WriteVerb.POWER_CYCLE: PowerVerb.CYCLE,
}


@dataclass(slots=True)
class World:
    """A cluster that obeys the rules beside it."""

    state: State
    faults: list[Fault] = field(default_factory=list)
    foreign: list[ForeignAct] = field(default_factory=list)
    late: list[Write] = field(default_factory=list)

    def tick(self, now: datetime) -> None:
        """Let everything happen that is due until `now`; an earlier time changes nothing."""
        state = self.state
        self._move()
        while state.due and state.due[0][0] <= now:
            at, _, due = heapq.heappop(state.due)
            state.now = max(state.now, at)
            self._happen(due)
            self._move()
        state.now = max(state.now, now)
        training_rules.move(state)

    def snapshot(self, limit: timedelta) -> Snapshot:
        """As the controller answers it. Raises Unreadable."""
        self._controller_answers(limit)
        return views.snapshot(self.state)

    def fresh_node(self, node: NodeName, limit: timedelta) -> Node:
        """One node. Raises Unreadable, UnknownNode."""
        self._controller_answers(limit)
        return views.node(self.state, node_named(self.state, node))

    def fresh_jobs(self, node: NodeName, limit: timedelta) -> tuple[Job, ...]:
        """Jobs on one node. Raises Unreadable, UnknownNode, Refusal."""
        self._controller_answers(limit)
        node_named(self.state, node)
        blind = views.blind(self.state)
        if blind:
            raise Refusal(blind[0])
        return views.jobs_on(self.state, node)

    def fresh_job(self, job: JobId, limit: timedelta) -> Job:
        """One job. Raises Unreadable, UnknownJob: also for one that this user may not see."""
        self._controller_answers(limit)
        if self.state.controller.hides_jobs:
            raise UnknownJob(f"Invalid job id specified: {job!a}")
        return views.job(job_shown(self.state, job))

    def fresh_reservations(self, limit: timedelta) -> tuple[Reservation, ...]:
        """All reservations. Raises Unreadable."""
        self._controller_answers(limit)
        return views.reservations(self.state)

    def written_since(
        self, node: NodeName, moment: datetime, limit: timedelta
    ) -> tuple[WrittenReason, ...]:
        """Reasons given at `moment` or later, the oldest first. Raises Unreadable, UnknownNode."""
        self._controller_answers(limit)
        written = node_named(self.state, node).written
        return tuple(entry for entry in written if entry.at >= moment)

    def canary(self, effect_id: str, limit: timedelta) -> Canary:
        """How far a canary has come. Raises Unreadable."""
        self._controller_answers(limit)
        return canary_rules.seen(self.state, effect_id)

    def reach(self, node: NodeName) -> Reachability:
        """What a connection to the host meets."""
        verdict = host_rules.reach(host_named(self.state, node))
        return Reachability(reach=verdict, evidence=EVIDENCE[verdict].format(host=node))

    def host_facts(self, node: NodeName) -> HostFacts:
        """What the node says of itself. Raises Unreadable."""
        seen = self.reach(node)
        if seen.reach is not Reach.ALIVE:
            raise Unreadable(f"{node} gives no answer: {seen.evidence}")
        return views.host_facts(self.state, host_named(self.state, node))

    def boot_ids(self, nodes: Sequence[NodeName]) -> dict[NodeName, BootId]:
        """Which boot each host is in; one that gives no answer keeps none of the others from theirs."""
        return {node: self._boot_id(node) for node in nodes}

    def _boot_id(self, node: NodeName) -> BootId:
        host = self.state.hosts.get(node)
        met = Reach.NO_ROUTE if host is None else host_rules.reach(host)
        if host is None or met is not Reach.ALIVE:
            return BootId(lost=f"{met.value}: {EVIDENCE[met].format(host=node)}")
        return BootId(value=host_rules.boot_id(self.state, host))

    def power_status(self, node: NodeName) -> PowerReading:
        """What the BMC says. Raises Unreadable, UnknownNode."""
        return power_rules.status(host_named(self.state, node))

    def event_log(self, node: NodeName) -> str:
        """The hardware's own log. Raises Unreadable, UnknownNode."""
        return power_rules.event_log(host_named(self.state, node))

    def tried(self, place: str, node: NodeName) -> Tried:
        """What the known ports of a host say to the bot (no place) or to another node."""
        return host_rules.tried(self.state, place, host_named(self.state, node))

    def service(self, node: NodeName, unit: str) -> Service | None:
        """One unit; None when the node gives no answer."""
        if self.reach(node).reach is not Reach.ALIVE:
            return None
        return views.service(host_named(self.state, node), unit_name(unit))

    def kernel_log(self, node: NodeName, previous_boot: bool) -> CommandResult:
        """The kernel's log."""
        host = host_named(self.state, node)
        lines = host.previous_log if previous_boot else host.kernel_log
        return self._lost(node) or CommandResult(exit_code=0, output="\n".join(lines))

    def run(
        self, nodes: Sequence[NodeName], command: tuple[str, ...]
    ) -> dict[NodeName, CommandResult]:
        """One command on many nodes."""
        return {
            name: self._lost(name)
            or node_commands.answer(self.state, host_named(self.state, name), command)
            for name in nodes
        }

    def write(self, write: Write) -> CommandResult | None:
        """Do what the bot asks, with the faults and foreign acts that were prepared for it.

        Raises Unreadable (nothing was written), Rejected, UnknownNode, WriteUnknown, NoAnswer.
        """
        self._foreign_acts(When.BEFORE, write.verb)
        fault = self._fault_for(write.verb)
        on_controller = write.verb.on_controller
        if on_controller and not self.state.controller.up:
            raise Unreadable(f"{GONE}: nothing was written")
        if fault is not None and fault.kind is FaultKind.REJECTED:
            raise Rejected(fault.words)
        if fault is not None and fault.kind is not FaultKind.APPLIED_NO_ANSWER:
            self._postpone(write, fault)
            raise NoAnswer(fault.holds)
        answer = self._apply(write)
        self._foreign_acts(When.AFTER, write.verb)
        if fault is not None:
            raise NoAnswer(fault.holds)
        if on_controller and self.state.controller.answer_delay > write.limit:
            raise WriteUnknown(_timed_out(write.limit))
        return answer

    def plug(self, name: str, arguments: Mapping[str, object]) -> object:
        """Pull one plug. Raises Rejected, UnknownNode, ValueError for arguments that do not fit."""
        verb = self.plug_named(name)
        answer: object = verb(self.state, **arguments)
        self._move()
        return answer

    def plug_named(self, name: str) -> Callable[..., object]:
        """The plug of that name. Raises ValueError that lists what there is."""
        verb = PLUGS.get(name)
        if verb is None:
            raise ValueError(f"no plug {name!a}; there are {', '.join(sorted(PLUGS))}")
        return verb

    def _apply(self, write: Write) -> CommandResult | None:
        """Change the world and note the effect; a rejected write leaves no effect."""
        answer: CommandResult | None = None
        state = self.state
        if write.verb.on_controller:
            write_rules.on_controller(state, write)
        elif write.verb in _POWER:
            power_rules.switch(state, host_named(state, write.node), _POWER[write.verb])
        else:
            lost = self._lost(write.node)
            if lost is not None:
                return lost
            answer = host_rules.start_unit(
                state,
                host_named(state, write.node),
                unit_name(write.arguments["unit"]),
                restart=write.verb is WriteVerb.RESTART_SERVICE,
            )
        self._note(write)
        self._move()
        return answer

    def _note(self, write: Write) -> None:
        """The effect, in the order in which the world changed."""
        state = self.state
        state.effects.append(
            Effect(
                number=len(state.effects) + 1,
                at=state.now,
                verb=write.verb.value,
                arguments={**({"node": write.node} if write.node else {}), **write.arguments},
                caller=write.caller,
                pid=write.pid,
            )
        )

    def _move(self) -> None:
        """What slurmctld does at once after anything has changed."""
        reboot_rules.issue_due(self.state)
        queue_rules.schedule(self.state)
        training_rules.move(self.state)

    def _postpone(self, write: Write, fault: Fault) -> None:
        """Put the effect on the list of what will happen, unless it is lost for good."""
        if fault.kind is FaultKind.APPLIED_LATER:
            self.late.append(write)
            self.state.later(
                self.state.now + fault.delay,
                Due(kind=DueKind.LATE_WRITE, subject=str(len(self.late) - 1)),
            )

    def _fault_for(self, verb: WriteVerb) -> Fault | None:
        """The first prepared fault that fits, used up by this."""
        for index, fault in enumerate(self.faults):
            if fault.verb in {None, verb}:
                return self.faults.pop(index)
        return None

    def _foreign_acts(self, when: When, verb: WriteVerb) -> None:
        """Pull the plugs prepared for this place, used up by this."""
        for act in tuple(self.foreign):
            if act.when is when and act.verb in {None, verb}:
                self.foreign.remove(act)
                for plug in act.plugs:
                    # What the controller refuses somebody else is no answer to this write.
                    with suppress(Rejected):
                        self._pull(plug)

    def _pull(self, plug: Mapping[str, object]) -> None:
        """Pull a plug that is written as a mapping."""
        arguments = dict(plug)
        self.plug(str(arguments.pop("plug")), arguments)

    def _lost(self, node: NodeName) -> CommandResult | None:
        """The result of a command on a host that cannot be reached."""
        seen = self.reach(node)
        if seen.reach is Reach.ALIVE:
            return None
        return CommandResult(exit_code=None, lost=f"{seen.reach.value}: {seen.evidence}")

    def _controller_answers(self, limit: timedelta) -> None:
        """Raise Unreadable when the controller is down or slower than the caller's patience."""
        if not self.state.controller.up:
            raise Unreadable(GONE)
        if self.state.controller.answer_delay > limit:
            raise Unreadable(_timed_out(limit))

    def _happen(self, due: Due) -> None:
        """One thing that was due."""
        if due_rules.of_controller(due.kind):
            due_rules.controller_acts(self.state, due)
            return
        match due.kind:
            case DueKind.BOOTED:
                host = self.state.hosts[NodeName(due.subject)]
                if str(host.boots) == due.stamp and host.fed and not host.powered:
                    host_rules.booted(self.state, host)
            case DueKind.CONTROLLER_BACK:
                controller_up(self.state)
            case DueKind.LATE_WRITE:
                self._late_write(self.late[int(due.subject)])
            case DueKind.PLUG:
                self._pull(json.loads(due.subject))
            case _:
                self.state.unsettled = True

    def _late_write(self, write: Write) -> None:
        """An effect whose caller has stopped waiting; what the world refuses, nobody hears."""
        if write.verb.on_controller and not self.state.controller.up:
            return
        try:
            self._apply(write)
        except (Rejected, UnknownNode, Unreadable) as error:
            self.state.happened("late write refused", write.node or write.verb, str(error))


def _timed_out(limit: timedelta) -> str:
    """The message of a call that took too long."""
    return TIMED_OUT.format(limit=limit / timedelta(seconds=1))
