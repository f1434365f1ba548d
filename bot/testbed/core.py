"""What every part of the testbed shares: its layout, who acts in it, and how it is read.

`testbed.SlurmTestbed` is this plus start and stop; the fault and job parts build on it.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from bot.testbed import commands, network
from bot.testbed.interpreter import python_for
from bot.testbed.layout import Layout, claim_network, node_names
from bot.testbed.options import TestbedOptions
from bot.testbed.requirements import program

READY_SECONDS = 300.0
"""Longest wait for a state that normally comes within a second or two."""

_FACT = re.compile(r"(?:^|\s)([A-Za-z][A-Za-z/:_]*)=(\S*)")


class Core:
    """Layout, users and reading of one testbed."""

    def __init__(
        self, folder: Path, nodes: int = 12, options: TestbedOptions | None = None
    ) -> None:
        """Choose names and ports; nothing is started and no file is written."""
        self.options = options or TestbedOptions()
        names = node_names(nodes)
        addresses, self._claim = claim_network()
        self.layout = Layout(
            folder=folder, nodes=names, network=addresses, backup=self.options.backup_controller
        )
        self.environment = commands.environment(self.slurm_conf)

    @property
    def folder(self) -> Path:
        """Everything that the testbed writes is below it."""
        return self.layout.folder

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of all virtual nodes."""
        return self.layout.nodes

    @property
    def slurm_conf(self) -> Path:
        """For SLURM_CONF of every client."""
        return self.layout.slurm_conf

    @property
    def ssh_config(self) -> Path:
        """For `ssh -F`: one Host block per node, strict host keys, the bot's key."""
        return self.layout.ssh_config

    @property
    def bot_user(self) -> str:
        """The ordinary OS user with AdminLevel=Admin."""
        return self.options.bot_user

    def run(self, *argv: str) -> str:
        """Output of a tool run as root on the main machine's network, whatever ails the bot's."""
        return commands.run(self._on_main(argv), self.environment)

    def run_as(self, user: str, *argv: str) -> str:
        """Output of a tool run as this user, in the folder of the jobs."""
        words = self._on_main(self.as_user(user, argv))
        return commands.run(words, self.environment, self.layout.jobs)

    def _on_main(self, argv: Sequence[str]) -> list[str]:
        first, *rest = argv
        words = [program(first) or first, *rest]
        return network.inside(network.process_of(self.layout.main_socket), words)

    def as_user(self, user: str, argv: Sequence[str]) -> list[str]:
        """The command that runs `argv` as this user."""
        return commands.as_user(user, argv, {"SLURM_CONF": str(self.slurm_conf)})

    def as_bot(self, argv: Sequence[str]) -> list[str]:
        """The command that runs `argv` as the bot: neither root nor slurm."""
        return self.as_user(self.bot_user, argv)

    def bot_python(self) -> list[str]:
        """A Python with this process's packages that the bot's user can run."""
        return python_for(self.bot_user)

    def wait_for(
        self, condition: Callable[[], object], what: str, seconds: float = READY_SECONDS
    ) -> None:
        """Poll until true; TestbedError with `what` after that time."""
        commands.wait_for(condition, seconds, what)

    def node(self, name: str) -> dict[str, str]:
        """`scontrol show node` as words; of a repeated word the first."""
        return _facts(self.run("scontrol", "--oneliner", "show", "node", name))

    def node_states(self, name: str) -> frozenset[str]:
        """Base state and flags of a node, as in `{IDLE, DRAIN}`."""
        return frozenset(self.node(name)["State"].replace("*", "+NOT_RESPONDING").split("+"))

    def wait_for_states(self, name: str, *states: str, seconds: float = READY_SECONDS) -> None:
        """Until a node has exactly these; RESUME, for one, passes through NOT_RESPONDING."""
        wanted = frozenset(states)
        self.wait_for(
            lambda: self.node_states(name) == wanted, f"{name} to be {'+'.join(states)}", seconds
        )

    def partition(self, name: str) -> dict[str, str]:
        """`scontrol show partition` as words."""
        return _facts(self.run("scontrol", "--oneliner", "show", "partition", name))

    def job(self, number: int) -> dict[str, str]:
        """`scontrol show job` as words. Not for jobs whose names contain `key=value`."""
        return _facts(self.run("scontrol", "--oneliner", "show", "job", str(number)))


def _facts(text: str) -> dict[str, str]:
    facts: dict[str, str] = {}
    for name, value in _FACT.findall(text):
        facts.setdefault(name, value)
    return facts
