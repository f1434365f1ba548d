"""`NodeHands` over ssh: reachability, facts, units and commands of real nodes.

Constructed by `actions.catalogue`, used by the actions on nodes. Names, units and commands are
checked before anything is started; a node that gave no answer never counts as exit code 0.
"""

import secrets
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from actions.contract import Refusal
from actions.node_readings import FileTail, Folder, PortTried, StackedThread
from actions.remote import program_words
from actions.remote.agent_process import AgentProcess, Question
from actions.remote.settings import RemoteSettings
from actions.remote.ssh_verdict import verdict
from actions.remote.unit_commands import checked_unit, parse_show
from actions.remote.visit import Span, parse_boot
from actions.remote.ways import Asked, way
from actions.remote.wire import Answer
from actions.remote_values import (
    BootId,
    CommandResult,
    HostFacts,
    Reach,
    Reachability,
    Service,
)
from actions.shell import Command, NotStarted, Runner, packages
from config.clock import Clock
from config.json_values import Json
from config.node_names import NodeName, node_name

_MARGIN = 4096
"""Kept beyond the cap and thrown away after redaction, so that no half of a secret is kept."""
_TIMED_OUT_ON_NODE = frozenset({124, 137})
"""Exit codes of `timeout`: it ended the command, or had to kill it."""
_KILL_AFTER = timedelta(seconds=5)


class RemoteNodes:
    """Nodes that are reached over ssh."""

    def __init__(
        self,
        settings: RemoteSettings,
        runner: Runner,
        clock: Clock,
        *,
        redact: Callable[[str], str],
        connected: Callable[[], bool],
    ) -> None:
        """`redact` sees all output first; `connected` says whether the bot reaches its reference
        hosts, without which no silence of a node means anything (hands 2).
        """
        self._settings = settings
        self._clock = clock
        self._redact = redact
        self._connected = connected
        self._way = way(settings)
        command = _agent_command(settings)
        self._agent = AgentProcess(lambda: runner.start(command), settings.fan_out)

    def close(self) -> None:
        """End the agent."""
        self._agent.close()

    def reach(self, node: NodeName) -> Reachability:
        """Whether the host answers, and how (hands 2)."""
        limit = self._settings.connect_limit
        answer = self._ask((node,), self._way.hello(), limit, options=("-v",))[node]
        found = verdict(answer)
        if found.reach in {Reach.TIME_OUT, Reach.NO_ROUTE} and not self._connected():
            return Reachability(
                reach=Reach.NOT_ASKED,
                evidence="the bot does not reach its reference hosts either: it is cut off itself",
            )
        return found

    def host_facts(self, node: NodeName) -> HostFacts:
        """What the node says of itself. Raises Unreadable when it gives no answer."""
        word = f"nodewarden-{secrets.token_hex(8)}"
        limit = 3 * self._settings.read_limit
        asked = self._clock.now().wall
        result = _result(self._ask((node,), self._way.facts(word), limit)[node])
        span = Span(asked=asked, answered=self._clock.now().wall)
        return self._way.read_facts(node, result, word, span)

    def boot_ids(self, nodes: Sequence[NodeName]) -> Mapping[NodeName, BootId]:
        """Which boot each is in. Asked in parts that leave half of the fan-out free: a repair that
        begins meanwhile does not stand in line behind a whole cluster.
        """
        wanted = tuple(dict.fromkeys(nodes))
        part = max(1, self._settings.fan_out // 2)
        found: dict[NodeName, BootId] = {}
        for first in range(0, len(wanted), part):
            asked = wanted[first : first + part]
            answers = self._ask(asked, self._way.boot(), self._settings.read_limit)
            found |= {node: parse_boot(_result(answer)) for node, answer in answers.items()}
        return found

    def service(self, node: NodeName, unit: str) -> Service:
        """State of one unit; ServiceState.UNKNOWN when the node gives no answer."""
        command = self._way.show(checked_unit(unit, self._settings))
        result = _result(self._ask((node,), command, self._settings.read_limit)[node])
        return parse_show(unit, result)

    def start_service(self, node: NodeName, unit: str, effect_id: str) -> CommandResult:
        """`systemctl start`, under a time limit and a lock on the node."""
        return self._change("start", node, unit, effect_id)

    def restart_service(self, node: NodeName, unit: str, effect_id: str) -> CommandResult:
        """`systemctl restart`, likewise."""
        return self._change("restart", node, unit, effect_id)

    def kernel_log(self, node: NodeName, previous_boot: bool) -> CommandResult:
        """The kernel's log of this boot or the one before, capped."""
        command = self._way.kernel_log(previous=previous_boot)
        return self._read(node, command)

    def run(
        self, nodes: Sequence[NodeName], command: Sequence[str], time_limit: timedelta
    ) -> Mapping[NodeName, CommandResult]:
        """One allow-listed read-only command on many nodes, fanned out and capped (design 7)."""
        if tuple(command) not in self._settings.commands:
            raise Refusal(
                f"command {shlex.join(command)[:80]!r} is not in the list of commands of the "
                "configuration: add it there, word for word"
            )
        answers = self._ask(tuple(dict.fromkeys(nodes)), self._way.free(command), time_limit)
        return {node: _result(answer) for node, answer in answers.items()}

    def ports_tried(self, neighbour: NodeName, address: str, ports: Sequence[int]) -> CommandResult:
        """What these ports of another host answer that node: a second vantage point (hands 2)."""
        command = self._way.tries(address, ports)
        return _result(self._ask((neighbour,), command, self._settings.read_limit)[neighbour])

    def file_tail(self, node: NodeName, user: str, path: str, most: int) -> FileTail:
        """The end of a file, read as this user. Raises Refusal, Unreadable."""
        return program_words.file_tail(self._special(node, "file-tail", user, path, str(most)))

    def file_list(self, node: NodeName, user: str, folder: str, pattern: str) -> Folder:
        """Entries of one folder, read as this user. Raises Refusal, Unreadable."""
        return program_words.folder(self._special(node, "file-list", user, folder, pattern))

    def stacks(self, node: NodeName, job: int) -> tuple[StackedThread, ...]:
        """Where the processes of a job stand. Raises Refusal, Unreadable."""
        return program_words.stacks(self._special(node, "stacks", f"job:{job}"))

    def unit_log(self, node: NodeName, unit: str, lines: int) -> CommandResult:
        """The last lines of a unit's journal. Raises Refusal."""
        words = ("logs", checked_unit(unit, self._settings), str(lines))
        return self._read(node, self._way.special(words))

    def tcp_try(self, node: NodeName, host: str, ports: Sequence[int]) -> tuple[PortTried, ...]:
        """Whether another host answers that node. Raises Refusal, Unreadable."""
        words = ("tcp-try", host, *(str(port) for port in ports))
        return program_words.ports(self._special(node, *words))

    def installed(self, node: NodeName) -> str:
        """Digest of the program on the node. Raises Refusal, Unreadable."""
        return str(self._special(node, "version").get("digest", ""))

    def _change(self, verb: str, node: NodeName, unit: str, effect_id: str) -> CommandResult:
        command = self._way.change(verb, checked_unit(unit, self._settings), effect_id)
        limit = self._settings.start_limit + 2 * _KILL_AFTER
        result = _result(self._ask((node,), command, limit)[node])
        no = "" if command.bounded else program_words.refusal(node, result)
        if no:
            raise Refusal(f"nothing was done: {no}")
        return program_words.believed(result)

    def _special(self, node: NodeName, *words: str) -> Mapping[str, Json]:
        """The structured answer of the node's program. Raises Refusal, Unreadable."""
        return program_words.fields(node, self._read(node, self._way.special(words)))

    def _read(self, node: NodeName, command: Asked) -> CommandResult:
        return _result(self._ask((node,), command, self._settings.read_limit)[node])

    def _ask(
        self,
        nodes: tuple[NodeName, ...],
        command: Asked,
        limit: timedelta,
        *,
        options: tuple[str, ...] = (),
    ) -> dict[NodeName, Answer]:
        """Ask these nodes; every name is checked before any process is started."""
        nodes = tuple(node_name(node) for node in nodes)
        seconds = max(1, int(limit.total_seconds()))
        killed = ("timeout", "-k", str(int(_KILL_AFTER.total_seconds())), str(seconds))
        words = (*killed, *command.words) if command.bounded else command.words
        whole = limit + 2 * _KILL_AFTER + self._settings.connect_limit
        question = Question(
            nodes=nodes,
            command=shlex.join(words),
            limit_ms=int(whole.total_seconds() * 1000),
            cap=self._settings.output_cap + _MARGIN,
            options=options,
        )
        try:
            answers = self._agent.ask(question)
        except NotStarted as error:
            return {
                node: Answer(id=0, node=node, exit_code=None, lost=f"nothing was asked: {error}")
                for node in nodes
            }
        return {node: self._redacted(answer) for node, answer in answers.items()}

    def _redacted(self, answer: Answer) -> Answer:
        cap = self._settings.output_cap
        output, errors = self._redact(answer.output), self._redact(answer.errors)
        return replace(
            answer,
            output=output[:cap],
            errors=errors[:cap],
            truncated=answer.truncated or len(output) > cap or len(errors) > cap,
            lost=self._redact(answer.lost),
        )


def _result(answer: Answer) -> CommandResult:
    """A command that was ended by its own limit on the node has no exit code to believe."""
    cut_off = answer.exit_code in _TIMED_OUT_ON_NODE
    return CommandResult(
        exit_code=None if cut_off else answer.exit_code,
        output=answer.output,
        errors=answer.errors,
        truncated=answer.truncated,
        lost="it was ended at its time limit on the node" if cut_off else answer.lost,
    )


def _agent_command(settings: RemoteSettings) -> Command:
    """The agent, with ssh's options before those of the site's file: the first value counts."""
    seconds = max(1, int(settings.connect_limit.total_seconds()))
    options = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "UpdateHostKeys": "no",
        "ConnectTimeout": str(seconds),
        "ConnectionAttempts": "1",
        "ServerAliveInterval": "15",
        "ServerAliveCountMax": "4",
        "ForwardAgent": "no",
        "ForwardX11": "no",
        "ClearAllForwardings": "yes",
        "PermitLocalCommand": "no",
        "ControlMaster": "no",
        "ControlPath": "none",
        "RequestTTY": "no",
        "EscapeChar": "none",
    }
    ssh = ["setpriv", "--pdeathsig", "KILL", "--", "ssh", "-n", "-F", str(settings.ssh_config)]
    ssh += [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    return Command(
        argv=(sys.executable, "-m", "actions.remote.agent", str(settings.fan_out), *ssh),
        time_limit=timedelta.max,
        environment={
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "LC_ALL": "C",
            "TZ": "UTC",
            "PYTHONPATH": packages(),
        },
    )
