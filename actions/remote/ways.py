"""The two ways to work on a node: with what any user may run there, or through the node's program.

Pure: command lines and the meaning of answers. Chosen by `node_access`; used by `actions.remote.nodes`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from actions.contract import Refusal, Unreadable
from actions.remote import ports, program_words
from actions.remote.settings import RemoteSettings
from actions.remote.ssh_verdict import ALIVE_MARK
from actions.remote.unit_commands import change_command, checked_effect, show_command
from actions.remote.visit import BOOT_COMMAND, Span, parse_visit, visit_command
from actions.remote_values import CommandResult, HostFacts
from config.node_access import NodeAccess
from config.node_names import NodeName

_KERNEL_LOGS = {
    False: ("journalctl", "-k", "-b", "0", "-o", "short-iso", "--no-pager", "-n", "20000"),
    True: ("journalctl", "-k", "-b", "-1", "-o", "short-iso", "--no-pager", "-n", "20000"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One command line for a node."""

    words: tuple[str, ...]
    bounded: bool = True
    """Put under `timeout` on the node: not the program, which is root's and keeps limits of its own."""


class Way(Protocol):
    """How each thing is asked. Units are checked before; raises Refusal for what this way cannot do."""

    def hello(self) -> Asked:
        """Anything that proves a shell."""
        ...

    def boot(self) -> Asked:
        """The boot id."""
        ...

    def facts(self, word: str) -> Asked:
        """One visit; `word` is new at each."""
        ...

    def read_facts(self, node: NodeName, result: CommandResult, word: str, span: Span) -> HostFacts:
        """What the visit found. Raises Unreadable."""
        ...

    def show(self, unit: str) -> Asked:
        """State of a unit."""
        ...

    def change(self, verb: str, unit: str, effect_id: str) -> Asked:
        """Start or restart."""
        ...

    def kernel_log(self, *, previous: bool) -> Asked:
        """The kernel's log."""
        ...

    def free(self, command: Sequence[str]) -> Asked:
        """A command from the list of the configuration."""
        ...

    def tries(self, address: str, wanted: Sequence[int]) -> Asked:
        """These TCP ports of another host."""
        ...

    def special(self, words: Sequence[str]) -> Asked:
        """A verb that only the node's program has."""
        ...


@dataclass(frozen=True, slots=True)
class Plain:
    """Nothing of ours on the node; systemctl asks polkit whether this user may."""

    settings: RemoteSettings

    def hello(self) -> Asked:
        """A harmless command."""
        return Asked(words=("echo", ALIVE_MARK))

    def boot(self) -> Asked:
        """Any user may read it."""
        return Asked(words=BOOT_COMMAND)

    def facts(self, word: str) -> Asked:
        """A script of fixed text, in a POSIX shell."""
        return Asked(words=visit_command(word, self.settings))

    def read_facts(self, node: NodeName, result: CommandResult, word: str, span: Span) -> HostFacts:
        """Parts between marks that no log line can know."""
        if word not in result.output:
            said = result.lost or result.errors.strip() or f"exit code {result.exit_code}"
            raise Unreadable(f"{node} told nothing of itself: {said[:200]}")
        return parse_visit(result.output, word, span)

    def show(self, unit: str) -> Asked:
        """`systemctl show`."""
        return Asked(words=show_command(unit))

    def change(self, verb: str, unit: str, effect_id: str) -> Asked:
        """`systemctl` under a lock."""
        return Asked(words=change_command(verb, unit, effect_id, self.settings))

    def kernel_log(self, *, previous: bool) -> Asked:
        """As far as this user may read the journal."""
        return Asked(words=_KERNEL_LOGS[previous])

    def tries(self, address: str, wanted: Sequence[int]) -> Asked:
        """Any user may connect."""
        return Asked(words=ports.command(address, wanted))

    def free(self, command: Sequence[str]) -> Asked:
        """As it is."""
        return Asked(words=tuple(command))

    def special(self, words: Sequence[str]) -> Asked:
        """Not this way."""
        raise Refusal(f"`{words[0]}` needs the node's program; this cluster has node_access: plain")


@dataclass(frozen=True, slots=True)
class Program:
    """Through the program that an admin installed."""

    access: NodeAccess

    def hello(self) -> Asked:
        """Says nothing of sudo: an alive host with a broken sudo is alive."""
        plain = Asked(words=("echo", ALIVE_MARK))
        return plain if self.access is NodeAccess.SUDO else self.special(("hello",))

    def boot(self) -> Asked:
        """Needs no root, so a fan-out over a whole cluster leaves sudo's log alone."""
        plain = Asked(words=BOOT_COMMAND)
        return plain if self.access is NodeAccess.SUDO else self.special(("boot",))

    def facts(self, word: str) -> Asked:
        """Answers in JSON, so no mark is needed."""
        return self.special(("facts",))

    def read_facts(self, node: NodeName, result: CommandResult, word: str, span: Span) -> HostFacts:
        """Parts of the answer."""
        return program_words.host_facts(node, result, span)

    def show(self, unit: str) -> Asked:
        """The state."""
        return self.special(("service-show", unit))

    def change(self, verb: str, unit: str, effect_id: str) -> Asked:
        """One effect at a time, each once."""
        return self.special((f"service-{verb}", unit, checked_effect(effect_id)))

    def kernel_log(self, *, previous: bool) -> Asked:
        """As root."""
        return self.special(("kernel-log", *(("--previous",) if previous else ())))

    def tries(self, address: str, wanted: Sequence[int]) -> Asked:
        """Needs no root; the program's own verb, with its list of hosts, where nothing else runs."""
        if self.access is NodeAccess.SUDO:
            return Asked(words=ports.command(address, wanted))
        return self.special(("tcp-try", address, *(str(port) for port in wanted)))

    def free(self, command: Sequence[str]) -> Asked:
        """A key that is bound to the program runs nothing else."""
        if self.access is NodeAccess.FORCED:
            raise Refusal(f"`{command[0]}` cannot run: this cluster has node_access: forced")
        return Asked(words=tuple(command))

    def special(self, words: Sequence[str]) -> Asked:
        """One verb of the program."""
        return Asked(words=program_words.asking(self.access, words), bounded=False)


def way(settings: RemoteSettings) -> Way:
    """The way that the site chose."""
    if settings.access is NodeAccess.PLAIN:
        return Plain(settings)
    return Program(settings.access)
