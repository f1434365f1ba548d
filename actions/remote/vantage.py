"""`Vantage` over the network: the bot's own connections, and those of a node that it asks over ssh.

Constructed by `actions.catalogue`. Sends nothing to the hosts that it tries.
"""

import errno
import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from actions.contract import Refusal
from actions.host_verdict import BOT
from actions.remote import ports
from actions.remote.reference import reached
from actions.remote_values import CommandResult
from actions.vantage import Answer, References, Tried
from config.node_names import NodeName

_REFUSALS = frozenset({errno.ECONNREFUSED, errno.ECONNRESET})


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteVantage:
    """The bot's host, and every node that it reaches."""

    known_ports: tuple[int, ...]
    reference_hosts: tuple[str, ...]
    tried_by: Callable[[NodeName, str, Sequence[int]], CommandResult]
    """Has a node try the ports of an address (`RemoteNodes.ports_tried`)."""

    def references(self) -> References:
        """Every reference host is tried: one alone may stand beside the bot."""
        return References(reached=reached(self.reference_hosts), named=len(self.reference_hosts))

    def from_bot(self, node: NodeName, address: str) -> Tried:
        """The known ports, one after the other until one answers."""
        found: list[tuple[str, str]] = []
        for port in self.known_ports:
            found.append(_one(address, port))
            if found[-1][0] in {"open", "refused"}:
                break
        return ports.judged(BOT, found)

    def from_node(self, neighbour: NodeName, node: NodeName, address: str) -> Tried:
        """The same, by another node; its own address proves nothing."""
        if neighbour == node:
            return Tried(place=neighbour, answer=Answer.NOT_ASKED, evidence="it is the host itself")
        try:
            result = self.tried_by(neighbour, address, self.known_ports)
        except Refusal as error:
            return Tried(place=neighbour, answer=Answer.NOT_ASKED, evidence=str(error)[:160])
        return ports.told(neighbour, result, self.known_ports)


def _one(address: str, port: int) -> tuple[str, str]:
    """One port, in the words of `actions.remote.ports`."""
    try:
        socket.create_connection((address, port), ports.PATIENCE).close()
    except TimeoutError:
        return "silent", f"port {port}: no answer within {ports.PATIENCE} s"
    except OSError as error:
        said = f"port {port}: {error.strerror or os.strerror(error.errno or 0)}"
        return "refused" if error.errno in _REFUSALS else "no_route", said
    return "open", f"port {port}: accepted"
