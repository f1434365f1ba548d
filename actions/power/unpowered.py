"""`PowerHands` where a site configured no way to its machines' power: every question is refused.

Constructed by `actions.catalogue`; so the causes that need power stop at a person.
"""

from actions.contract import Refusal
from actions.power_hands import PowerReading
from config.node_names import NodeName

_WHY = "this cluster has no section power in the settings: a person must see to the power"


class NoPower:
    """Hands that hold nothing."""

    def status(self, node: NodeName) -> PowerReading:
        """Raises Refusal."""
        raise Refusal(_WHY)

    def off(self, node: NodeName, effect_id: str) -> None:
        """Raises Refusal."""
        raise Refusal(_WHY)

    def on(self, node: NodeName, effect_id: str) -> None:
        """Raises Refusal."""
        raise Refusal(_WHY)

    def cycle(self, node: NodeName, effect_id: str) -> None:
        """Raises Refusal."""
        raise Refusal(_WHY)

    def event_log(self, node: NodeName) -> str:
        """Raises Refusal."""
        raise Refusal(_WHY)
