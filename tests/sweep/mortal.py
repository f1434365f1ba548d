"""A ledger and hands that die where they are told to: at a commit, or at an outside write.

Made in the forked bot only, around the product's own ledger and hands; the product has no switch for it.
"""

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TypeVar

from actions.catalogue import ClusterSite
from actions.cluster import (
    Job,
    JobChange,
    Node,
    Partition,
    Reservation,
    ReservationWish,
    Snapshot,
)
from actions.hands import Canary, NodeHands
from actions.power_hands import PowerReading
from actions.remote_values import BootId, CommandResult, HostFacts, Reachability, Service
from actions.simulated.canary import SimulatedCanary
from actions.simulated.client import Line, SimulatedCluster, SimulatedNodes
from actions.simulated.power import SimulatedPower, SimulatedVantage
from audit_log.ledger import Ledger, Transaction, Urgency
from config.ids import ClusterName, JobId
from config.node_names import NodeName

T = TypeVar("T")
SIM = ClusterName("sim")


class Moment(StrEnum):
    """Where a point lies in relation to the commit or write that it belongs to."""

    BEFORE = "before"
    NOW = "within-now"
    """The request is out, its effect happens at once, nobody reads the answer."""
    SOON = "within-1s"
    LATE = "within-3s"
    NEVER = "within-never"
    AFTER = "after"

    @property
    def within(self) -> bool:
        """Whether the world kills the bot while it waits for the answer."""
        return self.value.startswith("within")


class Sort(StrEnum):
    """What a point belongs to."""

    COMMIT = "commit"
    WRITE = "write"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One place in the life of a bot."""

    sort: Sort
    number: int
    """From 0, in the order of this process."""
    moment: Moment

    def __str__(self) -> str:
        """As a replay recipe has it."""
        return f"{self.sort}:{self.number}:{self.moment}"

    @classmethod
    def parse(cls, text: str) -> "Point":
        """The point of a recipe."""
        sort, number, moment = text.split(":")
        return cls(sort=Sort(sort), number=int(number), moment=Moment(moment))


@dataclass(slots=True)
class Fate:
    """Counts what this process does and calls `at` at every point of it."""

    at: Callable[[Point], None]
    labels: list[tuple[Sort, str]] = field(default_factory=list)
    """What each commit and write was, in order, as far as it got."""
    passed: Callable[[], None] = lambda: None
    """Called after each point, where time may have gone by."""
    counts: dict[Sort, int] = field(default_factory=lambda: dict.fromkeys(Sort, 0))

    @contextmanager
    def passing(self, sort: Sort) -> Iterator[list[str]]:
        """Around one commit or write; the list takes its label."""
        number = self.counts[sort]
        self.counts[sort] = number + 1
        label: list[str] = []
        self.at(Point(sort=sort, number=number, moment=Moment.BEFORE))
        self.passed()
        yield label
        self.labels.append((sort, label[0] if label else ""))
        self.at(Point(sort=sort, number=number, moment=Moment.AFTER))
        self.passed()


def dies_at(point: Point | None) -> Callable[[Point], None]:
    """The end of this process at that point."""

    def at(here: Point) -> None:
        if here == point:
            os.kill(os.getpid(), signal.SIGKILL)

    return at


def stops_at(wanted: Callable[[Point], bool]) -> Callable[[Point], None]:
    """A pause at every such point, until the parent lets the process go on."""

    def at(here: Point) -> None:
        if wanted(here):
            os.kill(os.getpid(), signal.SIGSTOP)

    return at


def mortal_ledger(fate: Fate) -> type[Ledger]:
    """The product's ledger, whose every commit passes by `fate`."""

    class MortalLedger(Ledger):
        """Counts from its own first commit on."""

        def commit(self, decide: Callable[[Transaction], T], urgency: Urgency = Urgency.REST) -> T:
            before = self._position.head.seq
            with fate.passing(Sort.COMMIT) as label:
                result = super().commit(decide, urgency)
                label.append(label_of(self, before))
            return result

    return MortalLedger


def label_of(ledger: Ledger, after: int) -> str:
    """What the records after this one are about: the action, or else the kind of event."""
    found = "nothing"
    for record in ledger.records(after=after):
        action = record.event.data.get("action")
        found = str(action) if action else record.event.kind.value
        if record.event.kind.value == "step.finished":
            run, key = record.event.run, record.event.data["key"]
            rows = ledger.query(
                "SELECT json_extract(body, '$.action') FROM run_steps WHERE run = ? AND key = ?",
                (run, key),
            )
            found = str(rows[0][0])
        return found
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class MortalCluster:
    """`ClusterHands`, `NodeChanges` and `JobHands` whose writes pass by `fate`."""

    hands: SimulatedCluster
    fate: Fate

    @property
    def name(self) -> ClusterName:
        return self.hands.name

    def snapshot(self) -> Snapshot:
        return self.hands.snapshot()

    def fresh_node(self, node: NodeName) -> Node:
        return self.hands.fresh_node(node)

    def fresh_jobs(self, node: NodeName) -> tuple[Job, ...]:
        return self.hands.fresh_jobs(node)

    def fresh_job(self, job: JobId) -> Job:
        return self.hands.fresh_job(job)

    def fresh_partition(self, name: str) -> Partition:
        return self.hands.fresh_partition(name)

    def fresh_reservations(self) -> tuple[Reservation, ...]:
        return self.hands.fresh_reservations()

    def drain(self, node: NodeName, reason: str) -> None:
        with self._write("node.drain@1"):
            self.hands.drain(node, reason)

    def resume(self, node: NodeName) -> None:
        with self._write("node.return@1"):
            self.hands.resume(node)

    def down(self, node: NodeName, reason: str) -> None:
        with self._write("node.down@1"):
            self.hands.down(node, reason)

    def reboot(self, node: NodeName) -> None:
        with self._write("node.reboot@1"):
            self.hands.reboot(node)

    def set_partition_nodes(self, partition: str, nodes: Sequence[NodeName]) -> None:
        with self._write("partition.write@1"):
            self.hands.set_partition_nodes(partition, nodes)

    def create_reservation(self, wish: ReservationWish) -> None:
        with self._write("reservation.hold@1"):
            self.hands.create_reservation(wish)

    def set_reservation_nodes(self, name: str, nodes: Sequence[NodeName]) -> None:
        with self._write("reservation.keep@1"):
            self.hands.set_reservation_nodes(name, nodes)

    def delete_reservation(self, name: str) -> None:
        with self._write("reservation.delete@1"):
            self.hands.delete_reservation(name)

    def requeue(self, jobs: Sequence[JobId]) -> None:
        with self._write("job.requeue@1"):
            self.hands.requeue(jobs)

    def change_job(self, job: JobId, change: JobChange) -> None:
        with self._write("job.point@1" if change.reservation else "job.settle@1"):
            self.hands.change_job(job, change)

    @contextmanager
    def _write(self, action: str) -> Iterator[None]:
        with self.fate.passing(Sort.WRITE) as label:
            label.append(action)
            yield


@dataclass(frozen=True, slots=True, kw_only=True)
class MortalCanary:
    """`CanaryHands` whose writes pass by `fate`."""

    hands: SimulatedCanary
    fate: Fate

    def start(self, node: NodeName, reservation: str, effect_id: str) -> None:
        with self.fate.passing(Sort.WRITE) as label:
            label.append("canary.start@1")
            self.hands.start(node, reservation, effect_id)

    def state(self, effect_id: str) -> Canary:
        return self.hands.state(effect_id)

    def end(self, effect_id: str) -> None:
        with self.fate.passing(Sort.WRITE) as label:
            label.append("canary.end@1")
            self.hands.end(effect_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class MortalNodes:
    """`NodeHands` whose writes pass by `fate`."""

    hands: NodeHands
    fate: Fate

    def reach(self, node: NodeName) -> Reachability:
        return self.hands.reach(node)

    def host_facts(self, node: NodeName) -> HostFacts:
        return self.hands.host_facts(node)

    def boot_ids(self, nodes: Sequence[NodeName]) -> Mapping[NodeName, BootId]:
        return self.hands.boot_ids(nodes)

    def service(self, node: NodeName, unit: str) -> Service:
        return self.hands.service(node, unit)

    def start_service(self, node: NodeName, unit: str, effect_id: str) -> CommandResult:
        with self.fate.passing(Sort.WRITE) as label:
            label.append("service.start@1")
            return self.hands.start_service(node, unit, effect_id)

    def restart_service(self, node: NodeName, unit: str, effect_id: str) -> CommandResult:
        with self.fate.passing(Sort.WRITE) as label:
            label.append("service.restart@1")
            return self.hands.restart_service(node, unit, effect_id)

    def kernel_log(self, node: NodeName, previous_boot: bool) -> CommandResult:
        return self.hands.kernel_log(node, previous_boot)

    def run(
        self, nodes: Sequence[NodeName], command: Sequence[str], time_limit: timedelta
    ) -> Mapping[NodeName, CommandResult]:
        return self.hands.run(nodes, command, time_limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class MortalPower:
    """`PowerHands` whose writes pass by `fate`."""

    hands: SimulatedPower
    fate: Fate

    def status(self, node: NodeName) -> PowerReading:
        return self.hands.status(node)

    def event_log(self, node: NodeName) -> str:
        return self.hands.event_log(node)

    def off(self, node: NodeName, effect_id: str) -> None:
        with self._write("power.off@1"):
            self.hands.off(node, effect_id)

    def on(self, node: NodeName, effect_id: str) -> None:
        with self._write("power.on@1"):
            self.hands.on(node, effect_id)

    def cycle(self, node: NodeName, effect_id: str) -> None:
        with self._write("power.cycle@1"):
            self.hands.cycle(node, effect_id)

    @contextmanager
    def _write(self, action: str) -> Iterator[None]:
        with self.fate.passing(Sort.WRITE) as label:
            label.append(action)
            yield


def mortal_site(line: Line, fate: Fate) -> ClusterSite:
    """All hands on the simulated cluster, under one fate."""
    simulated = SimulatedCluster(name=SIM, line=line)
    cluster = MortalCluster(hands=simulated, fate=fate)
    return ClusterSite(
        cluster=cluster,
        changes=cluster,
        jobs=cluster,
        canary=MortalCanary(hands=SimulatedCanary(line=line), fate=fate),
        nodes=MortalNodes(hands=SimulatedNodes(line=line), fate=fate),
        power=MortalPower(hands=SimulatedPower(line=line), fate=fate),
        readings=SimulatedNodes(line=line),
        vantage=SimulatedVantage(line=line),
        history=simulated,
        units=frozenset({"slurmd"}),
        close=lambda: None,
    )
