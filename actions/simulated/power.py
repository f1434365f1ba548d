"""The power of simulated machines, and the places from which they can be asked, over the server's socket.

Constructed by `actions.catalogue`. `PowerHands` and `Vantage`, as `client` is `ClusterHands` and `NodeHands`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from actions.contract import UnknownNode, Unreadable, WriteUnknown
from actions.power_hands import PowerReading
from actions.simulated import stage
from actions.simulated.client import Line, LostCall
from actions.simulated.wire import Sort
from actions.vantage import Answer, References, Tried
from config.node_names import NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedPower:
    """`PowerHands` over simulated BMCs."""

    line: Line

    def status(self, node: NodeName) -> PowerReading:
        """What the BMC says of the power."""
        return stage.POWER.validate_json(_read(self.line, "power_status", {"node": node}))

    def off(self, node: NodeName, effect_id: str) -> None:
        """Take the power away."""
        self._write("power_off", node, effect_id)

    def on(self, node: NodeName, effect_id: str) -> None:
        """Give power."""
        self._write("power_on", node, effect_id)

    def cycle(self, node: NodeName, effect_id: str) -> None:
        """Take it away and give it back."""
        self._write("power_cycle", node, effect_id)

    def event_log(self, node: NodeName) -> str:
        """The hardware's own log."""
        return stage.TEXT.validate_json(_read(self.line, "event_log", {"node": node}))

    def _write(self, verb: str, node: NodeName, effect_id: str) -> None:
        """A write. Unreadable: nothing was sent; WriteUnknown: it may have happened."""
        try:
            self.line.ask(Sort.WRITE, verb, {"node": node, "effect_id": effect_id})
        except ConnectionError as error:
            raise Unreadable(f"{error}: nothing was sent") from error
        except LostCall as error:
            raise WriteUnknown(str(error)) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedVantage:
    """`Vantage` over simulated hosts."""

    line: Line

    def references(self) -> References:
        """The bot reaches the simulation, which is all there is."""
        return References(reached=3, named=3)

    def from_bot(self, node: NodeName, address: str) -> Tried:
        """The known ports, tried by the bot."""
        return self._tried("", node)

    def from_node(self, neighbour: NodeName, node: NodeName, address: str) -> Tried:
        """The known ports, tried by another node."""
        return self._tried(neighbour, node)

    def _tried(self, place: str, node: NodeName) -> Tried:
        try:
            answer = _read(self.line, "tried", {"place": place, "node": node})
        except (Unreadable, UnknownNode) as error:
            return Tried(place=place or "the bot", answer=Answer.NOT_ASKED, evidence=str(error))
        return stage.TRIED.validate_json(answer)


def _read(line: Line, verb: str, arguments: Mapping[str, object]) -> bytes:
    """A reading. Raises Unreadable instead of what the socket raises."""
    try:
        return line.ask(Sort.READ, verb, arguments)
    except (ConnectionError, LostCall) as error:
        raise Unreadable(str(error)) from error
