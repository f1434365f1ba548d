"""Faults of cables: a node that lives on unreachable, and a bot that sees nobody."""

from bot.testbed import network
from bot.testbed.core import Core


class LinkFaults(Core):
    """Cables pulled and put back; whatever runs at either end goes on."""

    def cut_link(self, node: str) -> None:
        """Nobody reaches the node; its ranks run on and write to the storage that all nodes share."""
        network.plug(self.layout, self.layout.port(node), connected=False)

    def restore_link(self, node: str) -> None:
        """The way back from `cut_link`."""
        network.plug(self.layout, self.layout.port(node), connected=True)

    def cut_bot_uplink(self) -> None:
        """The bot, as all of this machine, reaches neither controller nor nodes, which live on.

        The methods of the testbed do not need the uplink.
        """
        network.plug(self.layout, network.UPLINK, connected=False)

    def restore_bot_uplink(self) -> None:
        """The way back from `cut_bot_uplink`."""
        network.plug(self.layout, network.UPLINK, connected=True)
