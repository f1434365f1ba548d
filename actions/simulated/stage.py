"""Requests by name: readings, writes, plugs, and the calls of whoever directs the play.

Called by `server` with a decoded request; answers JSON. Knows the world and no socket.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pydantic import TypeAdapter

from actions.cluster import Job, Node, Reservation, Snapshot
from actions.hands import Canary, WrittenReason
from actions.node_readings import FileTail, Folder, PortTried, StackedThread
from actions.power_hands import PowerReading
from actions.remote_values import BootId, CommandResult, HostFacts, Reachability, Service
from actions.simulated import job_files
from actions.simulated.state import Effect, Happening
from actions.simulated.wire import Request, Sort
from actions.simulated.world import World
from actions.simulated.writes import Fault, ForeignAct, Write
from actions.vantage import Tried
from config.clock import Clock
from config.ids import JobId
from config.node_names import NodeName

SNAPSHOT: TypeAdapter[Snapshot] = TypeAdapter(Snapshot)
NODE: TypeAdapter[Node] = TypeAdapter(Node)
JOB: TypeAdapter[Job] = TypeAdapter(Job)
RESERVATIONS: TypeAdapter[tuple[Reservation, ...]] = TypeAdapter(tuple[Reservation, ...])
JOBS: TypeAdapter[tuple[Job, ...]] = TypeAdapter(tuple[Job, ...])
REACHABILITY: TypeAdapter[Reachability] = TypeAdapter(Reachability)
HOST_FACTS: TypeAdapter[HostFacts] = TypeAdapter(HostFacts)
BOOTS: TypeAdapter[dict[NodeName, BootId]] = TypeAdapter(dict[NodeName, BootId])
SERVICE: TypeAdapter[Service | None] = TypeAdapter(Service | None)
RESULT: TypeAdapter[CommandResult | None] = TypeAdapter(CommandResult | None)
RESULTS: TypeAdapter[dict[NodeName, CommandResult]] = TypeAdapter(dict[NodeName, CommandResult])
EFFECTS: TypeAdapter[tuple[Effect, ...]] = TypeAdapter(tuple[Effect, ...])
HISTORY: TypeAdapter[tuple[Happening, ...]] = TypeAdapter(tuple[Happening, ...])
REASONS: TypeAdapter[tuple[WrittenReason, ...]] = TypeAdapter(tuple[WrittenReason, ...])
MOMENT: TypeAdapter[datetime] = TypeAdapter(datetime)
FILE_TAIL: TypeAdapter[FileTail] = TypeAdapter(FileTail)
FOLDER: TypeAdapter[Folder] = TypeAdapter(Folder)
STACKS: TypeAdapter[tuple[StackedThread, ...]] = TypeAdapter(tuple[StackedThread, ...])
PORTS: TypeAdapter[tuple[PortTried, ...]] = TypeAdapter(tuple[PortTried, ...])
CANARY: TypeAdapter[Canary] = TypeAdapter(Canary)
POWER: TypeAdapter[PowerReading] = TypeAdapter(PowerReading)
TRIED: TypeAdapter[Tried] = TypeAdapter(Tried)
TEXT: TypeAdapter[str] = TypeAdapter(str)
ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)
_FAULT = TypeAdapter(Fault)
_FOREIGN = TypeAdapter(ForeignAct)
_WRITE = TypeAdapter(Write)
_SPAN = TypeAdapter(timedelta)
_COMMAND = TypeAdapter(tuple[str, ...])


@dataclass(slots=True)
class Stage:
    """A world, and the time that goes by in it."""

    world: World
    clock: Clock | None = None
    """None: time stands still until it is moved by `forward`."""
    _offset: timedelta = field(default=timedelta(0), init=False)

    def __post_init__(self) -> None:
        """Let the world's own start be the present."""
        if self.clock is not None:
            self._offset = self.world.state.now - self.clock.now().wall

    def forward(self, by: timedelta) -> datetime:
        """Let time pass at once; answers the new present."""
        if self.clock is None:
            self.world.tick(self.world.state.now + by)
        else:
            self._offset += by
            self.present()
        return self.world.state.now

    def present(self) -> None:
        """Bring the world to now."""
        if self.clock is None:
            self.world.tick(self.world.state.now)
        else:
            self.world.tick(self.clock.now().wall + self._offset)

    def answer(self, request: Request, pid: int) -> bytes:
        """The JSON of the answer. Raises the errors of `wire.ERRORS`, KeyError, and NoAnswer."""
        self.present()
        arguments = request.arguments
        match request.sort:
            case Sort.READ:
                return _READS[request.verb](self.world, arguments, request.limit)
            case Sort.WRITE:
                return RESULT.dump_json(self.world.write(_write(request, pid)))
            case Sort.PLUG:
                return ANYTHING.dump_json(self.world.plug(request.verb, arguments))
            case Sort.STAGE:
                return self._direct(request.verb, arguments)

    def _direct(self, verb: str, arguments: Mapping[str, Any]) -> bytes:
        """A call of the director."""
        world = self.world
        match verb:
            case "forward":
                return MOMENT.dump_json(self.forward(_SPAN.validate_python(arguments["by"])))
            case "now":
                return MOMENT.dump_json(world.state.now)
            case "effects":
                return EFFECTS.dump_json(tuple(world.state.effects[int(arguments["after"]) :]))
            case "history":
                return HISTORY.dump_json(tuple(world.state.history))
            case "fail_next":
                world.faults.append(_FAULT.validate_python(arguments))
            case "at_next_write":
                world.foreign.append(_FOREIGN.validate_python(arguments))
            case "forget_prepared":
                world.faults.clear()
                world.foreign.clear()
            case _:
                raise ValueError(f"no call {verb!a} of the stage")
        return b"null"


def _write(request: Request, pid: int) -> Write:
    """The write of a request. Raises ValueError."""
    arguments = dict(request.arguments)
    return _WRITE.validate_python(
        {
            "verb": request.verb,
            "node": arguments.pop("node", ""),
            "arguments": arguments,
            "caller": request.caller,
            "pid": pid,
            "limit": request.limit,
        }
    )


def _node(arguments: Mapping[str, Any]) -> NodeName:
    """The node that is asked about; the world knows whether there is one."""
    return NodeName(str(arguments["node"]))


def _nodes(arguments: Mapping[str, Any]) -> list[NodeName]:
    """The nodes that are asked about at once."""
    return [NodeName(str(name)) for name in arguments["nodes"]]


_READS: dict[str, Callable[[World, Mapping[str, Any], timedelta], bytes]] = {
    "snapshot": lambda world, _, limit: SNAPSHOT.dump_json(world.snapshot(limit)),
    "fresh_node": lambda world, given, limit: NODE.dump_json(world.fresh_node(_node(given), limit)),
    "fresh_jobs": lambda world, given, limit: JOBS.dump_json(world.fresh_jobs(_node(given), limit)),
    "fresh_job": lambda world, given, limit: JOB.dump_json(
        world.fresh_job(JobId(str(given["job"])), limit)
    ),
    "fresh_reservations": lambda world, _, limit: RESERVATIONS.dump_json(
        world.fresh_reservations(limit)
    ),
    "written_since": lambda world, given, limit: REASONS.dump_json(
        world.written_since(_node(given), MOMENT.validate_python(given["moment"]), limit)
    ),
    "canary": lambda world, given, limit: CANARY.dump_json(
        world.canary(str(given["effect_id"]), limit)
    ),
    "reach": lambda world, given, _: REACHABILITY.dump_json(world.reach(_node(given))),
    "host_facts": lambda world, given, _: HOST_FACTS.dump_json(world.host_facts(_node(given))),
    "boot_ids": lambda world, given, _: BOOTS.dump_json(world.boot_ids(_nodes(given))),
    "service": lambda world, given, _: SERVICE.dump_json(
        world.service(_node(given), str(given["unit"]))
    ),
    "power_status": lambda world, given, _: POWER.dump_json(world.power_status(_node(given))),
    "event_log": lambda world, given, _: TEXT.dump_json(world.event_log(_node(given))),
    "tried": lambda world, given, _: TRIED.dump_json(
        world.tried(str(given["place"]), _node(given))
    ),
    "kernel_log": lambda world, given, _: RESULT.dump_json(
        world.kernel_log(_node(given), bool(given["previous_boot"]))
    ),
    "file_tail": lambda world, given, _: FILE_TAIL.dump_json(
        job_files.tail(
            world.state, _node(given), str(given["user"]), str(given["path"]), int(given["most"])
        )
    ),
    "file_list": lambda world, given, _: FOLDER.dump_json(
        job_files.listed(
            world.state,
            _node(given),
            str(given["user"]),
            str(given["folder"]),
            str(given["pattern"]),
        )
    ),
    "stacks": lambda world, given, _: STACKS.dump_json(
        job_files.stacks(world.state, _node(given), int(given["job"]))
    ),
    "unit_log": lambda world, given, _: RESULT.dump_json(
        job_files.unit_log(world.state, _node(given), str(given["unit"]), int(given["lines"]))
    ),
    "tcp_try": lambda world, given, _: PORTS.dump_json(
        job_files.tcp_try(world.state, _node(given), str(given["host"]), _ports(given))
    ),
    "run": lambda world, given, _: RESULTS.dump_json(world.run(_nodes(given), _command(given))),
}


def _ports(arguments: Mapping[str, Any]) -> tuple[int, ...]:
    """The ports that are tried."""
    return tuple(int(port) for port in arguments["ports"])


def _command(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """The argument list of a command."""
    return _COMMAND.validate_python(arguments["command"])
