"""The canary of a simulated cluster, over the server's socket: `CanaryHands`.

Constructed by `actions.catalogue`, as `client` is `ClusterHands` and `NodeHands`.
"""

from dataclasses import dataclass

from actions.contract import Unreadable, WriteUnknown
from actions.hands import Canary
from actions.simulated import stage, wire
from actions.simulated.client import Line, LostCall
from actions.simulated.wire import Sort
from config.node_names import NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedCanary:
    """`CanaryHands` over a simulated cluster."""

    line: Line
    user: str = "canary"

    def start(self, node: NodeName, reservation: str, effect_id: str) -> None:
        """Submit it for exactly this node, inside this reservation."""
        given = {"node": node, "reservation": wire.clean(reservation), "user": self.user}
        self._write("canary_start", {**given, "effect_id": effect_id})

    def state(self, effect_id: str) -> Canary:
        """How far it has come. Raises Unreadable."""
        try:
            answer = self.line.ask(Sort.READ, "canary", {"effect_id": effect_id})
        except (ConnectionError, LostCall) as error:
            raise Unreadable(str(error)) from error
        return stage.CANARY.validate_json(answer)

    def end(self, effect_id: str) -> None:
        """End it if it has not ended."""
        self._write("canary_end", {"effect_id": effect_id})

    def _write(self, verb: str, given: dict[str, str]) -> None:
        try:
            self.line.ask(Sort.WRITE, verb, given)
        except ConnectionError as error:
            raise Unreadable(f"{error}: nothing was written") from error
        except LostCall as error:
            raise WriteUnknown(str(error)) from error
