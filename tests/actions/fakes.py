"""A tiny cluster and its nodes in memory, behind the Protocols, with a list of everything written."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from actions.cluster import (
    Controller,
    Job,
    Node,
    NodeBase,
    Partition,
    Reservation,
    Snapshot,
)
from actions.contract import Call, Mark, Refusal, UnknownNode, Unreadable
from actions.hands import WrittenReason
from actions.remote_values import (
    BootId,
    CommandResult,
    HostFacts,
    Reach,
    Reachability,
    Service,
    ServiceState,
)
from config.ids import ClusterName, InstanceId, JobId, RunId, StepId
from config.json_values import Json
from config.node_names import NodeName

NOW = datetime(2026, 11, 30, 17, 20, 0, tzinfo=UTC)
CLUSTER = ClusterName("main")
NODE = NodeName("gpu-01")
RUN = RunId("run-12")
INSTANCE = InstanceId("0a1b2c3d")
BOOT = "0a1b2c3d-1111-2222-3333-444455556666"
OTHER_BOOT = "ffffffff-1111-2222-3333-444455556666"


ALIVE = Reachability(reach=Reach.ALIVE, evidence="a command ran")
HEALTHY = HostFacts(
    boot_id=BOOT,
    gpus_seen=8,
    memory_mib=1000,
    cpus=64,
    clock_offset_ms=0,
    slurmd_version="25.11.7",
    munge_ok=True,
    gres_seen="gpu:h100:8",
)
WORKED = CommandResult(exit_code=0)
QUIET = CommandResult(exit_code=0, output="kernel: quiet\n")


def make_node(**changes: object) -> Node:
    """A healthy idle node with eight GPUs."""
    node = Node(
        name=NODE,
        base=NodeBase.IDLE,
        flags=frozenset(),
        partitions=frozenset({"train"}),
        features=frozenset({"rack1"}),
        gres="gpu:h100:8",
        gpus=8,
        cpus=64,
        memory_mib=1000,
        version="25.11.7",
        boot_time=NOW - timedelta(days=3),
    )
    return replace(node, **changes)  # type: ignore[arg-type]


def make_job(**changes: object) -> Job:
    """A running job on the node."""
    job = Job(
        id=JobId("7"), slurm_id=7, name="llama", user="ann", state="RUNNING", nodes=(NODE,), gpus=8
    )
    return replace(job, **changes)  # type: ignore[arg-type]


def make_mark(**changes: object) -> Mark:
    """Our open drain of the node."""
    mark = Mark(
        kind="drain",
        cluster=CLUSTER,
        node=NODE,
        run=RUN,
        boot_id=BOOT,
        text="nw A1 [run-12/0a1b2c3d]",
        at=NOW - timedelta(minutes=5),
    )
    return replace(mark, **changes)  # type: ignore[arg-type]


def make_call(**changes: object) -> Call:
    """A call for the node."""
    given = dict[str, Json]({"node": NODE})
    extra = changes.pop("arguments", {})
    if isinstance(extra, Mapping):
        given.update(extra)
    call = Call(
        run=RUN,
        step=StepId("step"),
        attempt=1,
        instance=INSTANCE,
        cluster=CLUSTER,
        node=NODE,
        arguments=given,
        cause="A1",
        now=NOW,
    )
    return replace(call, **changes)  # type: ignore[arg-type]


def slurmd(state: ServiceState = ServiceState.ACTIVE, **changes: object) -> Service:
    """slurmd in this state, three minutes long."""
    service = Service(
        unit="slurmd",
        state=state,
        since=NOW - timedelta(minutes=3),
        main_pid=4711 if state is ServiceState.ACTIVE else 0,
        kill_mode="process",
        delegate="yes",
    )
    return replace(service, **changes)  # type: ignore[arg-type]


@dataclass(slots=True)
class FakeCluster:
    """`ClusterHands` and `ReasonHistory`; every write is listed."""

    nodes: dict[NodeName, Node] = field(default_factory=lambda: {NODE: make_node()})
    jobs: tuple[Job, ...] = ()
    partitions: tuple[Partition, ...] = (Partition(name="train", state="UP", nodes=(NODE,)),)
    reservations: tuple[Reservation, ...] = ()
    started: datetime | None = NOW - timedelta(days=1)
    reboot_program: str = "/usr/sbin/reboot"
    resume_timeout: timedelta = timedelta(minutes=15)
    blind: str = ""
    silent: bool = False
    written: list[str] = field(default_factory=list)
    history: list[WrittenReason] = field(default_factory=list)
    before_write: Callable[["FakeCluster"], None] | None = None
    """What another operator does between the last look and the write."""
    after_write: Callable[["FakeCluster"], None] | None = None
    """What another operator does between the write and the read-back."""
    write_error: Exception | None = None
    write_happens: bool = True

    @property
    def name(self) -> ClusterName:
        return CLUSTER

    @property
    def node(self) -> Node:
        return self.nodes[NODE]

    def change(self, **changes: object) -> None:
        """Change the node."""
        self.nodes[NODE] = replace(self.node, **changes)  # type: ignore[arg-type]

    def foreign(self, reason: str, by: str = "root") -> None:
        """A person drains the node with this Reason."""
        self.change(flags=self.node.flags | {"DRAIN"}, reason=reason, reason_by=by)
        self.history.append(WrittenReason(reason=reason, by=by, at=NOW))

    def snapshot(self) -> Snapshot:
        self._answer()
        return Snapshot(
            cluster=CLUSTER,
            taken_at=NOW,
            controller=Controller(
                cluster=CLUSTER,
                version="25.11.7",
                booted_at=self.started,
                slurmd_timeout=timedelta(seconds=300),
                return_to_service=1,
                reboot_program=self.reboot_program,
                resume_timeout=self.resume_timeout,
            ),
            nodes=dict(self.nodes),
            jobs=self.jobs,
            partitions=self.partitions,
            reservations=self.reservations,
        )

    def fresh_node(self, node: NodeName) -> Node:
        self._answer()
        if node not in self.nodes:
            raise UnknownNode(node)
        return self.nodes[node]

    def fresh_jobs(self, node: NodeName) -> tuple[Job, ...]:
        self._answer()
        if self.blind:
            raise Refusal(self.blind)
        return tuple(job for job in self.jobs if node in job.nodes)

    def drain(self, node: NodeName, reason: str) -> None:
        def write() -> None:
            self.change(flags=self.node.flags | {"DRAIN"}, reason=reason, reason_by="nodewarden")
            self.history.append(WrittenReason(reason=reason, by="nodewarden", at=NOW))

        self._write(f"drain {node} {reason}", write)

    def resume(self, node: NodeName) -> None:
        def write() -> None:
            base = NodeBase.IDLE if self.node.base is NodeBase.DOWN else self.node.base
            self.change(flags=self.node.flags - {"DRAIN"}, reason="", base=base)

        self._write(f"resume {node}", write)

    def down(self, node: NodeName, reason: str) -> None:
        def write() -> None:
            self.change(base=NodeBase.DOWN, reason=reason, reason_by="nodewarden")

        self._write(f"down {node} {reason}", write)

    def reboot(self, node: NodeName) -> None:
        def write() -> None:
            self.change(flags=self.node.flags | {"REBOOT_ISSUED"})

        self._write(f"reboot {node}", write)

    def fresh_reservations(self) -> tuple[Reservation, ...]:
        self._answer()
        return self.reservations

    def fresh_partition(self, name: str) -> Partition:
        self._answer()
        found = next((one for one in self.partitions if one.name == name), None)
        if found is None:
            raise Refusal(f"no partition {name}")
        return found

    def set_partition_nodes(self, partition: str, nodes: Sequence[NodeName]) -> None:
        def write() -> None:
            self.partitions = tuple(
                replace(old, nodes=tuple(nodes), total_nodes=len(nodes))
                if old.name == partition
                else old
                for old in self.partitions
            )

        self._write(f"partition {partition} {','.join(nodes)}", write)

    def written_since(self, node: NodeName, moment: datetime) -> Sequence[WrittenReason]:
        return [entry for entry in self.history if entry.at >= moment]

    def _write(self, text: str, write: Callable[[], None]) -> None:
        if self.before_write:
            self.before_write(self)
        if self.write_happens:
            self.written.append(text)
            write()
        if self.after_write:
            self.after_write(self)
        if self.write_error:
            raise self.write_error

    def _answer(self) -> None:
        if self.silent:
            raise Unreadable("slurmctld does not answer")


@dataclass(slots=True)
class FakeNodes:
    """`NodeHands` for the one node; every start and restart is listed."""

    verdict: Reachability = ALIVE
    facts: HostFacts | None = HEALTHY
    unit: Service = field(default_factory=slurmd)
    after: Service | None = None
    """State after a start or restart."""
    result: CommandResult = WORKED
    log: CommandResult = QUIET
    done: list[str] = field(default_factory=list)

    def reach(self, node: NodeName) -> Reachability:
        return self.verdict

    def host_facts(self, node: NodeName) -> HostFacts:
        if self.facts is None:
            raise Unreadable(f"{node} tells nothing")
        return self.facts

    def boot_ids(self, nodes: Sequence[NodeName]) -> Mapping[NodeName, BootId]:
        said = BootId(lost="silent") if self.facts is None else BootId(value=self.facts.boot_id)
        return dict.fromkeys(nodes, said)

    def service(self, node: NodeName, unit: str) -> Service:
        return replace(self.unit, unit=unit)

    def start_service(self, node: NodeName, unit: str, effect_id: str) -> CommandResult:
        return self._change(f"start {unit} {effect_id}")

    def restart_service(self, node: NodeName, unit: str, effect_id: str) -> CommandResult:
        return self._change(f"restart {unit} {effect_id}")

    def kernel_log(self, node: NodeName, previous_boot: bool) -> CommandResult:
        return self.log

    def run(
        self, nodes: Sequence[NodeName], command: Sequence[str], time_limit: timedelta
    ) -> Mapping[NodeName, CommandResult]:
        raise AssertionError("no verb on nodes runs a free command")

    def _change(self, text: str) -> CommandResult:
        self.done.append(text)
        if self.after is not None:
            self.unit = self.after
        return self.result
