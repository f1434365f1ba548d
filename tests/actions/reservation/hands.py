"""Reservations of a small cluster in memory, with a list of everything written."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from actions.cluster import Job, JobChange, Node, Reservation, ReservationWish
from actions.contract import Call, Mark, Rejected, UnknownJob, Unreadable
from actions.reservation.settings import Hands, ReservationSettings
from config.ids import JobId
from config.node_names import NodeName
from tests.actions.fakes import (
    CLUSTER,
    INSTANCE,
    NOW,
    RUN,
    FakeCluster,
    make_call,
    make_mark,
    make_node,
)

ONE, TWO, THREE = (NodeName(f"gpu-0{number}") for number in (1, 2, 3))
OURS = f"nw-{RUN}-ground-{INSTANCE}"
HOUR = timedelta(hours=1)


def nodes() -> dict[NodeName, Node]:
    return {name: make_node(name=name) for name in (ONE, TWO, THREE)}


def reservation(**changes: object) -> Reservation:
    """What `reservation.hold` makes, as Slurm shows it."""
    found = Reservation(
        name=OURS,
        nodes=(ONE, TWO),
        starts_at=NOW,
        ends_at=NOW + HOUR,
        flags=frozenset({"IGNORE_JOBS", "SPEC_NODES"}),
        users=("ann",),
    )
    return replace(found, **changes)  # type: ignore[arg-type]


@dataclass
class FakeJobs:
    """`JobHands` over the same memory."""

    cluster: FakeCluster
    written: list[str] = field(default_factory=list)
    before_write: Callable[[], None] | None = None
    after_write: Callable[[], None] | None = None
    write_error: Exception | None = None
    write_happens: bool = True
    silent_after: bool = False
    delete_refused: int = 0
    """So many times, because a job points to it."""

    def fresh_job(self, job: JobId) -> Job:
        raise UnknownJob(job)

    def fresh_reservations(self) -> tuple[Reservation, ...]:
        if self.cluster.silent or (self.silent_after and self.written):
            raise Unreadable("slurmctld does not answer")
        return self.cluster.reservations

    def create_reservation(self, wish: ReservationWish) -> None:
        made = reservation(
            name=wish.name,
            nodes=wish.nodes,
            users=(wish.user,),
            ends_at=NOW + wish.length,
            flags=wish.flags | {"SPEC_NODES"},
        )
        self._write(f"create {wish.name}", (*self.cluster.reservations, made))

    def set_reservation_nodes(self, name: str, nodes: Sequence[NodeName]) -> None:
        listed = tuple(
            replace(found, nodes=tuple(nodes)) if found.name == name else found
            for found in self.cluster.reservations
        )
        self._write(f"nodes {name} {','.join(nodes)}", listed)

    def delete_reservation(self, name: str) -> None:
        if self.delete_refused:
            self.delete_refused -= 1
            raise Rejected("Requested reservation is in use")
        left = tuple(found for found in self.cluster.reservations if found.name != name)
        self._write(f"delete {name}", left)

    def requeue(self, jobs: Sequence[JobId]) -> None:
        raise AssertionError("no verb on reservations requeues")

    def change_job(self, job: JobId, change: JobChange) -> None:
        raise AssertionError("no verb on reservations changes a job")

    def _write(self, text: str, after: tuple[Reservation, ...]) -> None:
        if self.before_write:
            self.before_write()
        if self.write_happens:
            self.written.append(text)
            self.cluster.reservations = after
        if self.after_write:
            self.after_write()
        if self.write_error:
            raise self.write_error


@dataclass
class Place:
    """The cluster, and the hands of the verbs on it."""

    cluster: FakeCluster = field(default_factory=lambda: FakeCluster(nodes=nodes()))
    hands_off: dict[NodeName, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.jobs = FakeJobs(self.cluster)
        self.hands = Hands(
            clusters={CLUSTER: self.cluster},
            jobs={CLUSTER: self.jobs},
            settings=ReservationSettings(
                hands_off=lambda _cluster, node: self.hands_off.get(node, "")
            ),
        )


def mark(**changes: object) -> Mark:
    """The ledger's row of the reservation of this run."""
    given = {"kind": "reservation", "node": NodeName(OURS), "boot_id": "", "text": "gpu-[01-02]"}
    return make_mark(**{**given, **changes})


def hold_call(**changes: object) -> Call:
    """Keep two nodes for an hour for ann."""
    arguments = {
        "name": OURS,
        "nodes": [ONE, TWO],
        "user": "ann",
        "length": "1h",
        **dict(changes.pop("arguments", {})),  # type: ignore[call-overload]
    }
    return make_call(node=None, arguments=arguments, **changes)
