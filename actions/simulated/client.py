"""The simulated cluster as the bot sees it: `ClusterHands` and `NodeHands` over the server's socket.

Constructed by `actions.catalogue`. Holds no connection and no answer: a call connects, asks once and
closes, so that it survives a fork, a kill on either side, and a new server at the same path.
"""

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from actions.cluster import Job, JobChange, Node, Partition, Reservation, ReservationWish, Snapshot
from actions.contract import Refusal, Unreadable, WriteUnknown
from actions.hands import WrittenReason
from actions.node_readings import FileTail, Folder, PortTried, StackedThread
from actions.remote_values import (
    BootId,
    CommandResult,
    HostFacts,
    Reachability,
    Service,
    ServiceState,
)
from actions.simulated import stage, wire
from actions.simulated.flights import Flights
from actions.simulated.wire import Request, Sort
from config.ids import ClusterName, JobId
from config.node_names import NodeName
from config.redaction import Redactor

_CHUNK = 1 << 20


class LostCall(Exception):
    """The server got the request (or may have) and no answer came back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Where the server listens, who asks, and how long the caller waits."""

    path: Path
    caller: str = "nodewarden"
    limit: timedelta = timedelta(seconds=5)
    redactor: Redactor | None = None
    """Masks secrets in what comes in; a director, who only plays, has none."""

    def ask(self, sort: Sort, verb: str, arguments: Mapping[str, object]) -> bytes:
        """The JSON of the answer.

        Raises the errors of `wire.ERRORS`, ConnectionError when nobody listens, and LostCall.
        """
        request = wire.encode_request(
            Request(
                sort=sort,
                verb=verb,
                arguments=dict(arguments),
                caller=self.caller,
                limit=self.limit,
            )
        )
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as line:
            line.settimeout(self.limit / timedelta(seconds=1))
            try:
                line.connect(str(self.path))
            except OSError as error:
                raise ConnectionError(f"nobody listens at {self.path}: {error}") from error
            try:
                line.sendall(request)
                answer = _receive(line)
            except OSError as error:
                raise LostCall(f"no answer from the simulated cluster: {error}") from error
        if not answer:
            raise LostCall("the connection to the simulated cluster was closed without an answer")
        decoded = wire.decode_answer(answer)
        return decoded if self.redactor is None else wire.masked(decoded, self.redactor)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedCluster:
    """`ClusterHands`, `NodeChanges`, `JobHands`, `ReasonHistory` over a simulated slurmctld."""

    name: ClusterName
    line: Line
    flights: Flights[Snapshot] = field(default_factory=Flights, compare=False, repr=False)

    def snapshot(self) -> Snapshot:
        """The whole cluster now; who asks at the same time gets the same one."""
        return self.flights.take(self._snapshot)

    def _snapshot(self) -> Snapshot:
        taken = stage.SNAPSHOT.validate_json(self._read("snapshot", {}))
        if taken.cluster != self.name:
            raise Unreadable(f"asked {self.name}, but cluster {taken.cluster!a} answered")
        return taken

    def fresh_node(self, node: NodeName) -> Node:
        """This node now."""
        return stage.NODE.validate_json(self._read("fresh_node", {"node": node}))

    def fresh_jobs(self, node: NodeName) -> tuple[Job, ...]:
        """Jobs on this node now."""
        return stage.JOBS.validate_json(self._read("fresh_jobs", {"node": node}))

    def written_since(self, node: NodeName, moment: datetime) -> Sequence[WrittenReason]:
        """Reasons given at `moment` or later, the oldest first."""
        given = {"node": node, "moment": moment.isoformat()}
        return stage.REASONS.validate_json(self._read("written_since", given))

    def drain(self, node: NodeName, reason: str) -> None:
        """Set DRAIN with this Reason."""
        self._write("drain", {"node": node, "reason": wire.clean(reason)})

    def resume(self, node: NodeName) -> None:
        """Clear DRAIN."""
        self._write("resume", {"node": node})

    def down(self, node: NodeName, reason: str) -> None:
        """Set DOWN with this Reason."""
        self._write("down", {"node": node, "reason": wire.clean(reason)})

    def reboot(self, node: NodeName) -> None:
        """Plain `scontrol reboot`."""
        self._write("reboot", {"node": node})

    def set_partition_nodes(self, partition: str, nodes: Sequence[NodeName]) -> None:
        """Write the full list of a partition's nodes."""
        given = {"partition": wire.clean(partition), "nodes": ",".join(nodes)}
        self._write("set_partition_nodes", given)

    def fresh_job(self, job: JobId) -> Job:
        """This one job now."""
        return stage.JOB.validate_json(self._read("fresh_job", {"job": wire.clean(job)}))

    def fresh_partition(self, name: str) -> Partition:
        """This partition now. Raises Refusal where there is none of that name."""
        found = next((one for one in self._snapshot().partitions if one.name == name), None)
        if found is None:
            raise Refusal(f"the controller of {self.name} knows no partition {name[:60]!a}")
        return found

    def fresh_reservations(self) -> tuple[Reservation, ...]:
        """All reservations now."""
        return stage.RESERVATIONS.validate_json(self._read("fresh_reservations", {}))

    def create_reservation(self, wish: ReservationWish) -> None:
        """Make it, from now on."""
        given = {
            "name": wire.clean(wish.name),
            "nodes": ",".join(wish.nodes),
            "user": wire.clean(wish.user),
            "minutes": str(wish.length // timedelta(minutes=1)),
            "flags": ",".join(sorted(wish.flags)),
        }
        self._write("create_reservation", given)

    def set_reservation_nodes(self, name: str, nodes: Sequence[NodeName]) -> None:
        """Give a reservation exactly these nodes."""
        self._write("set_reservation_nodes", {"name": wire.clean(name), "nodes": ",".join(nodes)})

    def delete_reservation(self, name: str) -> None:
        """Delete it."""
        self._write("delete_reservation", {"name": wire.clean(name)})

    def requeue(self, jobs: Sequence[JobId]) -> None:
        """`scontrol requeue Incomplete` with these ids."""
        self._write("requeue", {"jobs": wire.clean(",".join(jobs))})

    def change_job(self, job: JobId, change: JobChange) -> None:
        """One update of one job."""
        fields = {
            "reservation": change.reservation,
            "excluded_nodes": change.excluded_nodes,
            "priority": None if change.priority is None else str(change.priority),
        }
        told = {name: wire.clean(text) for name, text in fields.items() if text is not None}
        self._write("change_job", {"job": wire.clean(job), **told})

    def _read(self, verb: str, arguments: Mapping[str, object]) -> bytes:
        """A reading. Raises Unreadable instead of what the socket raises."""
        try:
            return self.line.ask(Sort.READ, verb, arguments)
        except (ConnectionError, LostCall) as error:
            raise Unreadable(str(error)) from error

    def _write(self, verb: str, arguments: Mapping[str, object]) -> None:
        """A write. Unreadable: nothing was written; WriteUnknown: it may have been."""
        try:
            self.line.ask(Sort.WRITE, verb, arguments)
        except ConnectionError as error:
            raise Unreadable(f"{error}: nothing was written") from error
        except LostCall as error:
            raise WriteUnknown(str(error)) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedNodes:
    """`NodeHands` and `NodeReadings` over simulated hosts."""

    line: Line

    def reach(self, node: NodeName) -> Reachability:
        """What a connection to the host meets."""
        return stage.REACHABILITY.validate_json(self._read("reach", {"node": node}))

    def host_facts(self, node: NodeName) -> HostFacts:
        """What the node says of itself."""
        return stage.HOST_FACTS.validate_json(self._read("host_facts", {"node": node}))

    def boot_ids(self, nodes: Sequence[NodeName]) -> Mapping[NodeName, BootId]:
        """Which boot each host is in, in one request; without an answer, why for each of them."""
        try:
            return stage.BOOTS.validate_json(self._read("boot_ids", {"nodes": list(nodes)}))
        except Unreadable as error:
            return {node: BootId(lost=str(error)) for node in nodes}

    def service(self, node: NodeName, unit: str) -> Service:
        """State of one unit."""
        found = stage.SERVICE.validate_json(self._read("service", {"node": node, "unit": unit}))
        return found or Service(unit=unit, state=ServiceState.UNKNOWN)

    def start_service(self, node: NodeName, unit: str, effect_id: str) -> CommandResult:
        """`systemctl start`."""
        return self._write("start_service", node, unit, effect_id)

    def restart_service(self, node: NodeName, unit: str, effect_id: str) -> CommandResult:
        """`systemctl restart`."""
        return self._write("restart_service", node, unit, effect_id)

    def kernel_log(self, node: NodeName, previous_boot: bool) -> CommandResult:
        """The kernel's log."""
        answer = self._read("kernel_log", {"node": node, "previous_boot": previous_boot})
        return _result(answer)

    def run(
        self, nodes: Sequence[NodeName], command: Sequence[str], time_limit: timedelta
    ) -> Mapping[NodeName, CommandResult]:
        """One read-only command on many nodes; every node has a result, also where none came."""
        patient = Line(path=self.line.path, caller=self.line.caller, limit=time_limit)
        given = {"nodes": list(nodes), "command": [wire.clean(word) for word in command]}
        try:
            return stage.RESULTS.validate_json(patient.ask(Sort.READ, "run", given))
        except (ConnectionError, LostCall) as error:
            return {node: CommandResult(exit_code=None, lost=str(error)) for node in nodes}

    def _read(self, verb: str, arguments: Mapping[str, object]) -> bytes:
        """A reading. Raises Unreadable instead of what the socket raises."""
        try:
            return self.line.ask(Sort.READ, verb, arguments)
        except (ConnectionError, LostCall) as error:
            raise Unreadable(str(error)) from error

    def file_tail(self, node: NodeName, user: str, path: str, most: int) -> FileTail:
        """The end of a file, read as this user."""
        given = {"node": node, "user": user, "path": wire.clean(path), "most": most}
        return stage.FILE_TAIL.validate_json(self._read("file_tail", given))

    def file_list(self, node: NodeName, user: str, folder: str, pattern: str) -> Folder:
        """Entries of one folder, read as this user."""
        given = {"node": node, "user": user, "folder": wire.clean(folder)}
        answer = self._read("file_list", {**given, "pattern": wire.clean(pattern)})
        return stage.FOLDER.validate_json(answer)

    def stacks(self, node: NodeName, job: int) -> tuple[StackedThread, ...]:
        """Where the processes of a job stand."""
        return stage.STACKS.validate_json(self._read("stacks", {"node": node, "job": job}))

    def unit_log(self, node: NodeName, unit: str, lines: int) -> CommandResult:
        """The last lines of a unit's journal."""
        return _result(self._read("unit_log", {"node": node, "unit": unit, "lines": lines}))

    def tcp_try(self, node: NodeName, host: str, ports: Sequence[int]) -> tuple[PortTried, ...]:
        """Whether another host answers that node."""
        given = {"node": node, "host": wire.clean(host), "ports": list(ports)}
        return stage.PORTS.validate_json(self._read("tcp_try", given))

    def _write(self, verb: str, node: NodeName, unit: str, effect_id: str) -> CommandResult:
        """A command that changes something; no answer is a result without exit code."""
        given = {"node": node, "unit": unit, "effect_id": effect_id}
        try:
            return _result(self.line.ask(Sort.WRITE, verb, given))
        except (ConnectionError, LostCall) as error:
            return CommandResult(exit_code=None, lost=str(error))


def _result(answer: bytes) -> CommandResult:
    """A command's result. Raises ValueError when there is none."""
    found = stage.RESULT.validate_json(answer)
    if found is None:
        raise ValueError("the simulated cluster answered a command with nothing")
    return found


def _receive(line: socket.socket) -> bytes:
    """Everything until the server closes. Raises OSError, also for an answer beyond all bounds."""
    chunks: list[bytes] = []
    size = 0
    while chunk := line.recv(_CHUNK):
        size += len(chunk)
        if size > wire.LARGEST_ANSWER:
            raise OSError(f"the answer is larger than {wire.LARGEST_ANSWER} bytes")
        chunks.append(chunk)
    return b"".join(chunks)
