"""A job on a sick node, its survivors and a spare, in memory behind the hands of the verbs on jobs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from actions.cluster import (
    Job,
    JobChange,
    Partition,
    Reservation,
    ReservationWish,
    Snapshot,
)
from actions.contract import Call, Mark, Refusal, UnknownJob
from actions.job.settings import Hands, JobSettings
from actions.power_hands import PowerReading, PowerState
from actions.spares import NO_SPARES, SpareRules
from config.ids import JobId
from config.job_settings import Restartable
from config.json_values import Json
from config.node_names import NodeName
from tests.actions.fakes import (
    CLUSTER,
    INSTANCE,
    NOW,
    RUN,
    FakeCluster,
    make_call,
    make_job,
    make_node,
)

SICK, TWO, THREE, SPARE = (NodeName(f"gpu-0{number}") for number in (1, 2, 3, 4))
NODES = (SICK, TWO, THREE)
GROUND = (TWO, THREE, SPARE)
HELD = f"nw-{RUN}-ground-{INSTANCE}"


def training(**changes: object) -> Job:
    """A three-node job of ann's, in its first run."""
    job = make_job(
        nodes=NODES,
        node_count=3,
        gpus=24,
        partition="train",
        qos="normal",
        account="pre",
        priority=100,
        submitted_at=NOW - timedelta(days=2),
        started_at=NOW - timedelta(days=1),
        ends_at=NOW + timedelta(days=1),
        time_limit=timedelta(days=2),
    )
    return replace(job, **changes)  # type: ignore[arg-type]


def pending(number: int, **changes: object) -> Job:
    """A job that waits behind."""
    job = make_job(
        id=JobId(str(number)),
        slurm_id=number,
        user="bob",
        account="other",
        state="PENDING",
        state_reason="Resources",
        nodes=(),
        node_count=1,
        partition="train",
        qos="normal",
        priority=50,
        time_limit=timedelta(days=1),
    )
    return replace(job, **changes)  # type: ignore[arg-type]


def held(**changes: object) -> Reservation:
    """The reservation of this run."""
    found = Reservation(
        name=HELD,
        nodes=GROUND,
        starts_at=NOW,
        ends_at=NOW + timedelta(minutes=30),
        users=("ann",),
        flags=frozenset({"IGNORE_JOBS"}),
    )
    return replace(found, **changes)  # type: ignore[arg-type]


@dataclass(slots=True)
class JobCluster(FakeCluster):
    """The cluster, whose jobs can be written too."""

    preempt_type: str = "preempt/none"
    blind_snapshot: tuple[str, ...] = ()

    @property
    def job(self) -> Job:
        return self.jobs[0]

    def change_the_job(self, **changes: object) -> None:
        """Change the training job."""
        self.jobs = (replace(self.job, **changes), *self.jobs[1:])  # type: ignore[arg-type]

    def change_node(self, name: NodeName, **changes: object) -> None:
        """Change one node."""
        self.nodes[name] = replace(self.nodes[name], **changes)  # type: ignore[arg-type]

    def snapshot(self) -> Snapshot:
        seen = FakeCluster.snapshot(self)
        controller = replace(seen.controller, preempt_type=self.preempt_type)
        return replace(seen, controller=controller, blind=self.blind_snapshot)

    def fresh_job(self, job: JobId) -> Job:
        self._answer()
        for each in self.jobs:
            if each.id == job:
                return each
        raise UnknownJob(f"the controller knows no job {job} (any more)")

    def fresh_reservations(self) -> tuple[Reservation, ...]:
        self._answer()
        return self.reservations

    def create_reservation(self, wish: ReservationWish) -> None:
        raise AssertionError("no verb on jobs makes a reservation")

    def set_reservation_nodes(self, name: str, nodes: Sequence[NodeName]) -> None:
        raise AssertionError("no verb on jobs changes a reservation")

    def delete_reservation(self, name: str) -> None:
        raise AssertionError("no verb on jobs deletes a reservation")

    def requeue(self, jobs: Sequence[JobId]) -> None:
        def write() -> None:
            self.change_the_job(state="COMPLETING", restarts=self.job.restarts + 1)

        self._write(f"requeue {','.join(jobs)}", write)

    def change_job(self, job: JobId, change: JobChange) -> None:
        def write() -> None:
            names = ("reservation", "excluded_nodes", "priority")
            given = {name: getattr(change, name) for name in names}
            self.change_the_job(
                **{name: value for name, value in given.items() if value is not None}
            )

        shown = {"reservation": change.reservation, "excluded": change.excluded_nodes}
        words = [f"{name}={value}" for name, value in shown.items() if value is not None]
        words += [f"priority={change.priority}"] if change.priority is not None else []
        self._write(f"change {job} {' '.join(words)}", write)


def cluster(**changes: object) -> JobCluster:
    """A full cluster with one idle spare."""
    names = (*NODES, SPARE)
    found = JobCluster(
        nodes={name: make_node(name=name) for name in names},
        jobs=(training(),),
        partitions=(
            Partition(name="train", state="UP", nodes=names, priority_tier=1, preempt_mode="OFF"),
        ),
    )
    for name, value in changes.items():
        setattr(found, name, value)
    return found


@dataclass(slots=True)
class FakePower:
    """What a BMC says, one answer after the other."""

    says: list[PowerState] = field(default_factory=list)

    def status(self, node: NodeName) -> PowerReading:
        if not self.says:
            raise Refusal(f"no BMC of {node}")
        return PowerReading(state=self.says.pop(0), evidence="told")

    def off(self, node: NodeName, effect_id: str) -> None:
        raise AssertionError("no verb on jobs takes power")

    on = cycle = off

    def event_log(self, node: NodeName) -> str:
        raise AssertionError("no verb on jobs reads it")


def hands(
    found: JobCluster,
    *,
    rules: Sequence[Restartable] = (),
    power: FakePower | None = None,
    hands_off: Callable[[NodeName], str] = lambda _node: "",
    spares: SpareRules = NO_SPARES,
) -> Hands:
    """Everything a verb on jobs needs."""
    return Hands(
        clusters={CLUSTER: found},
        jobs={CLUSTER: found},
        settings=JobSettings(
            hands_off=lambda _cluster, node: hands_off(node), spares=spares, restartable=rules
        ),
        pause=lambda _: None,
        powers={} if power is None else {CLUSTER: power},
    )


def call(**arguments: Json) -> Call:
    """A call for job 7 on the sick node, by the run that made the reservation."""
    mark = Mark(
        kind="reservation",
        cluster=CLUSTER,
        node=NodeName(HELD),
        run=RUN,
        boot_id="",
        text=HELD,
        at=NOW,
    )
    given: dict[str, Json] = {"job": "7", "node": SICK, **arguments}
    return make_call(arguments=given, marks=(mark,))


def requeue_call(**changes: Json) -> Call:
    """The requeue that was planned from Restarts 0."""
    planned: dict[str, Json] = {"restarts": 0, "reservation": HELD}
    return call(**{**planned, **changes})


def point_call(**changes: Json) -> Call:
    """Pointing, or settling, a job that had no reservation."""
    before: dict[str, Json] = {
        "reservation": HELD,
        "reservation_before": "",
        "priority": 100,
    }
    return call(**{**before, **changes})
