"""What is wrong with the way to the nodes, for `doctor`: the program, sudo, the login, the host keys.

Constructed by `actions.catalogue`. Looks only.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from actions.contract import Refusal, Unreadable
from actions.remote.nodes import RemoteNodes
from actions.remote.packing import digest
from actions.remote.settings import RemoteSettings
from actions.remote_values import Reach
from actions.shell import Command, Runner
from config.node_access import NodeAccess
from config.node_names import NodeName

_LIMIT = timedelta(seconds=10)
_PATH = "/usr/local/bin:/usr/bin:/bin"
_ADOPT = "pam_slurm_adopt"
_LOOSE = frozenset({"no", "off", "false", "accept-new"})


@dataclass(frozen=True, slots=True)
class AccessCheck:
    """Asks one node at a time."""

    nodes: RemoteNodes
    settings: RemoteSettings
    runner: Runner

    def faults(self, node: NodeName) -> tuple[str, ...]:
        """Everything that is wrong with the way to this node, a sentence each."""
        return (*self._client(node), *self._node(node))

    def _node(self, node: NodeName) -> Iterator[str]:
        found = self.nodes.reach(node)
        if found.reach is not Reach.ALIVE:
            exempt = (
                f": exempt the bot's user from {_ADOPT}, it logs in without a job"
                if _ADOPT in found.evidence
                else ""
            )
            yield f"{node} gives no shell ({found.reach}, {found.evidence[:160]}){exempt}"
            return
        if self.settings.access is NodeAccess.PLAIN:
            return
        try:
            installed = self.nodes.installed(node)
        except (Refusal, Unreadable) as error:
            yield str(error)
            return
        if installed != digest():
            yield (
                f"{node} has another version of the node's program ({installed[:16] or 'unknown'}, "
                f"not {digest()[:16]}): run `nodewarden helper install` there"
            )

    def _client(self, node: NodeName) -> Iterator[str]:
        """What the site's own ssh configuration says; the bot's options bind the last hop alone."""
        effective = self._effective(node)
        if effective.get("user") == "root":
            yield f"ssh goes to {node} as root: give the bot an account of its own in ssh_config"
        jumps = effective.get("proxyjump", "none")
        for jump in jumps.split(",") if jumps != "none" else ():
            host = jump.rpartition("@")[2].partition(":")[0]
            if self._effective(host).get("stricthostkeychecking", "") in _LOOSE:
                yield f"the jump host {host[:60]} is believed whatever its key: StrictHostKeyChecking yes"

    def _effective(self, host: str) -> dict[str, str]:
        words = ("ssh", "-G", "-F", str(self.settings.ssh_config), "--", host)
        done = self.runner.run(
            Command(argv=words, time_limit=_LIMIT, environment={"PATH": _PATH, "LC_ALL": "C"})
        )
        pairs = (line.partition(" ") for line in done.stdout.splitlines())
        return {key: value for key, _, value in pairs}
