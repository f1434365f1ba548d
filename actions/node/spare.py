"""`spare.choose` and `spare.name`: which node stands in for a lost one, and how spares are held. Look only.

Called by the engine; the choice itself is `actions.spares`.
"""

from dataclasses import dataclass, replace

from actions.cluster import Node, Snapshot
from actions.contract import (
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
from actions.node import readings
from actions.node.settings import Hands
from actions.ownership import (
    RESERVATION_KIND,
    UNKNOWN_BOOT,
    Holder,
    Scene,
    holding,
    reservation_name,
)
from actions.spares import Choice, Held, choose
from config.json_values import JsonMap
from config.permissions import Permission

_CHOOSE = ActionSpec(
    name="spare.choose",
    version=1,
    summary="Say which node stands in for a lost one, and by which way it is taken",
    permission=Permission.NODE_READ,
    parameters={"node": Field(type=ValueType.NODE, help="node that is lost")},
    output={
        "how": Field(
            type=ValueType.TEXT, help="none_needed, reservation, drained, partition or none"
        ),
        "spare": Field(type=ValueType.NODE, help="node that stands in, or empty"),
        "why": Field(type=ValueType.TEXT, help="one sentence for the card"),
        "refused": Field(
            type=ValueType.FACTS, help="nodes that were not taken, with the difference"
        ),
        "name": Field(
            type=ValueType.TEXT, help="reservation or partition that is changed, or empty"
        ),
        "members": Field(type=ValueType.NODES, help="its nodes afterwards"),
        "before": Field(type=ValueType.NODES, help="its nodes now"),
    },
    looks_only=True,
    all_marks=True,
)
_NAME = replace(
    _CHOOSE,
    name="spare.name",
    summary="Name the reservation in which spares are held",
    parameters={},
    output={"name": Field(type=ValueType.TEXT, help="name of the reservation")},
    all_marks=False,
)
_MOST_REFUSED = 12


@dataclass(frozen=True, slots=True)
class ChooseSpare:
    """The verb."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _CHOOSE

    def look(self, call: Call) -> Observation:
        """Nothing is decided by a look. Raises Refusal."""
        why = f"a node that stands in for {readings.target(call)}"
        return Observation(standing=Standing.NOT_SO, why=why)

    def do(self, call: Call) -> Outcome:
        """Choose, on a cluster that may be believed."""
        try:
            snapshot = readings.settled_snapshot(call, self.hands)
            lost = readings.fresh_node(call, self.hands)
        except Unreadable as error:
            return Unknown(why=str(error))
        except Refusal as error:
            return Failed(error=str(error), kind=FailureKind.REFUSED)
        rules = self.hands.settings.spares
        return Done(output=_output(choose(snapshot, lost, None, rules, self._held(call, snapshot))))

    def _held(self, call: Call, snapshot: Snapshot) -> Held:
        spares = [
            snapshot.nodes[name]
            for name in sorted(self.hands.settings.spares.nodes)
            if name in snapshot.nodes
        ]
        off = {
            node.name: why
            for node in spares
            if (why := self.hands.settings.hands_off(call.cluster, node.name))
        }
        return Held(
            drained=frozenset(node.name for node in spares if _ours(call, snapshot, node)),
            reservations=frozenset(
                found.name
                for found in snapshot.reservations
                if _held_spares(call, found.name)
                and set(found.nodes) <= self.hands.settings.spares.nodes
            ),
            hands_off=off,
        )


@dataclass(frozen=True, slots=True)
class NameSpares:
    """The verb."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _NAME

    def look(self, call: Call) -> Observation:
        """Nothing is decided by a look."""
        return Observation(standing=Standing.NOT_SO, why=_name(call))

    def do(self, call: Call) -> Outcome:
        """Name it."""
        return Done(output={"name": _name(call)})


def _name(call: Call) -> str:
    return reservation_name(call, "spares")


def _ours(call: Call, snapshot: Snapshot, node: Node) -> bool:
    scene = Scene(node=node, reservations=snapshot.reservations, boot_id=UNKNOWN_BOOT, hands_off="")
    found = holding(scene, call)
    return node.draining and found.holder is Holder.US and found.mark is not None


def _held_spares(call: Call, name: str) -> bool:
    """Whether the ledger knows it as ours."""
    return any(
        (mark.kind, mark.cluster, mark.node) == (RESERVATION_KIND, call.cluster, name)
        for mark in call.marks
    )


def _output(found: Choice) -> JsonMap:
    return {
        "how": found.how.value,
        "spare": found.node or "",
        "why": found.why,
        "refused": [text[:200] for text in found.refused[:_MOST_REFUSED]],
        "name": found.name,
        "members": list(found.members),
        "before": list(found.before),
    }
