"""Hands for the verbs on power, over fakes: a BMC that can lie, and places that answer."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta

from actions.cluster import Node, NodeBase
from actions.host_look import Eyes
from actions.power.hands import Hands, PowerSettings
from actions.power_hands import PowerReading, PowerState
from actions.remote_values import Reach, Reachability
from actions.vantage import Answer, References, Tried
from config.node_names import NodeName
from tests.actions.fakes import CLUSTER, NODE, FakeCluster, FakeNodes, make_node

OTHER = NodeName("gpu-02")
SILENT = Reachability(reach=Reach.TIME_OUT, evidence="Connection timed out")
BETWEEN = timedelta(seconds=5)


@dataclass(slots=True)
class FakePower:
    """`PowerHands` for the one node."""

    state: PowerState = PowerState.ON
    says: list[PowerState] = field(default_factory=list)
    """What the next readings say, whatever is so."""
    sent: list[str] = field(default_factory=list)
    error: Exception | None = None
    """Raised by the next request, after it was carried out or not."""
    deaf: bool = False
    unread: Exception | None = None
    readings: int = 0
    before_write: Callable[[], object] | None = None

    def status(self, node: NodeName) -> PowerReading:
        if self.unread is not None:
            raise self.unread
        self.readings += 1
        state = self.says.pop(0) if self.says else self.state
        return PowerReading(state=state, evidence=f"PowerState {state}", source=f"{node}-bmc")

    def off(self, node: NodeName, effect_id: str) -> None:
        self._switch("off", node, PowerState.OFF)

    def on(self, node: NodeName, effect_id: str) -> None:
        self._switch("on", node, PowerState.ON)

    def cycle(self, node: NodeName, effect_id: str) -> None:
        self._switch("cycle", node, PowerState.ON)

    def event_log(self, node: NodeName) -> str:
        return "PSU 1 lost"

    def _switch(self, verb: str, node: NodeName, state: PowerState) -> None:
        self.sent.append(f"{verb} {node}")
        if not self.deaf:
            self.state = state
        if self.error is not None:
            raise self.error


@dataclass(slots=True)
class Places:
    """`Vantage`: nobody gets an answer, unless told so."""

    bot: Answer = Answer.SILENT
    neighbour: Answer = Answer.SILENT
    reached: int = 3

    def references(self) -> References:
        return References(reached=self.reached, named=3)

    def from_bot(self, node: NodeName, address: str) -> Tried:
        return Tried(place="the bot", answer=self.bot, evidence="ports 22, 6818")

    def from_node(self, neighbour: NodeName, node: NodeName, address: str) -> Tried:
        return Tried(place=neighbour, answer=self.neighbour, evidence="ports 22, 6818")


def dead_node(**changes: object) -> Node:
    """DOWN since slurmctld gave it up."""
    node = make_node(
        base=NodeBase.DOWN,
        flags=frozenset({"NOT_RESPONDING"}),
        reason="Not responding",
        reason_by="slurm",
    )
    return replace(node, **changes)  # type: ignore[arg-type]


@dataclass(slots=True)
class Scene:
    """A dead node with its neighbour, its BMC and the pauses that were made."""

    cluster: FakeCluster = field(
        default_factory=lambda: FakeCluster(nodes={NODE: dead_node(), OTHER: make_node(name=OTHER)})
    )
    nodes: FakeNodes = field(default_factory=lambda: FakeNodes(verdict=SILENT, facts=None))
    power: FakePower = field(default_factory=FakePower)
    places: Places = field(default_factory=Places)
    pauses: list[timedelta] = field(default_factory=list)
    hands_off: str = ""

    @property
    def hands(self) -> Hands:
        return Hands(
            clusters={CLUSTER: self.cluster},
            eyes=Eyes(nodes=self.nodes, vantage=self.places),
            power=self.power,
            settings=PowerSettings(
                hands_off=lambda _cluster, _node: self.hands_off, between_readings=BETWEEN
            ),
            pause=self.pauses.append,
        )
