"""Faults of what a node's kernel hands out: process numbers, and writes to its disk."""

from bot.testbed import disks
from bot.testbed.commands import ask
from bot.testbed.core import Core


class ResourceFaults(Core):
    """Exhausted or stuck, with the way back."""

    def fill_pids(self, node: str) -> None:
        """No process or thread can be started on the node; those that run go on.

        sshd takes connections and ends them at once; slurmd may give up when slurmctld asks it
        something, as it does on a real node. Raises TestbedError where the kernel is older
        than 6.14 and has one limit for all.
        """
        ask(self.layout.node_socket(node), "fill_pids")

    def free_pids(self, node: str) -> None:
        """The way back from `fill_pids`; so is the loss of power."""
        ask(self.layout.node_socket(node), "free_pids")

    @staticmethod
    def missing_disks() -> str:
        """One line that says why no node can have a disk of its own here, or empty text."""
        return disks.missing()

    def give_scratch(self, node: str) -> None:
        """A small disk of the node's own; the ranks of a coupled job write a line to it each step."""
        disks.give(self.layout, node)

    def freeze(self, node: str) -> None:
        """Whoever writes to the node's own disk stands in D state; SIGKILL does not end it."""
        disks.give(self.layout, node)
        disks.freeze(self.layout, node)

    def thaw(self, node: str) -> None:
        """The way back from `freeze`; what was killed meanwhile ends now."""
        disks.thaw(self.layout, node)
