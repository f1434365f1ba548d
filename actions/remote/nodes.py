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

from actions.contract import Refusal, Unreadable
from actions.remote.agent_process import AgentProcess, Question
from actions.remote.ports import command as port_command
from actions.remote.settings import RemoteSettings
from actions.remote.ssh_verdict import ALIVE_MARK, verdict
from actions.remote.unit_commands import (
    change_command,
    checked_unit,
    parse_show,
    show_command,
)
from actions.remote.visit import BOOT_COMMAND, Span, parse_boot, parse_visit, visit_command
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
from config.node_names import NodeName, node_name

_MARGIN = 4096
"""Kept beyond the cap and thrown away after redaction, so that no half of a secret is kept."""
_TIMED_OUT_ON_NODE = frozenset({124, 137})
"""Exit codes of `timeout`: it ended the command, or had to kill it."""
_KILL_AFTER = timedelta(seconds=5)

_KERNEL_LOGS = {
    False: ("journalctl", "-k", "-b", "0", "-o", "short-iso", "--no-pager", "-n", "20000"),
    True: ("journalctl", "-k", "-b", "-1", "-o", "short-iso", "--no-pager", "-n", "20000"),
}


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
        command = _agent_command(settings)
        self._agent = AgentProcess(lambda: runner.start(command), settings.fan_out)

    def close(self) -> None:
        """End the agent."""
        self._agent.close()

    def reach(self, node: NodeName) -> Reachability:
        """Whether the host answers, and how (hands 2)."""
        limit = self._settings.connect_limit
        answer = self._ask((node,), ("echo", ALIVE_MARK), limit, options=("-v",))[node]
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
        answer = self._ask((node,), visit_command(word, self._settings), limit)[node]
        span = Span(asked=asked, answered=self._clock.now().wall)
        if word not in answer.output:
            said = answer.lost or answer.errors.strip() or f"exit code {answer.exit_code}"
            raise Unreadable(f"{node} told nothing of itself: {said[:200]}")
        return parse_visit(answer.output, word, span)

    def boot_ids(self, nodes: Sequence[NodeName]) -> Mapping[NodeName, BootId]:
        """Which boot each is in. Asked in parts that leave half of the fan-out free: a repair that
        begins meanwhile does not stand in line behind a whole cluster.
        """
        wanted = tuple(dict.fromkeys(nodes))
        part = max(1, self._settings.fan_out // 2)
        found: dict[NodeName, BootId] = {}
        for first in range(0, len(wanted), part):
            asked = wanted[first : first + part]
            answers = self._ask(asked, BOOT_COMMAND, self._settings.read_limit)
            found |= {node: parse_boot(_result(answer)) for node, answer in answers.items()}
        return found

    def service(self, node: NodeName, unit: str) -> Service:
        """State of one unit; ServiceState.UNKNOWN when the node gives no answer."""
        command = show_command(checked_unit(unit, self._settings))
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
        command = _KERNEL_LOGS[previous_boot]
        return _result(self._ask((node,), command, self._settings.read_limit)[node])

    def run(
        self, nodes: Sequence[NodeName], command: Sequence[str], time_limit: timedelta
    ) -> Mapping[NodeName, CommandResult]:
        """One allow-listed read-only command on many nodes, fanned out and capped (design 7)."""
        if tuple(command) not in self._settings.commands:
            raise Refusal(
                f"command {shlex.join(command)[:80]!r} is not in the list of commands of the "
                "configuration: add it there, word for word"
            )
        answers = self._ask(tuple(dict.fromkeys(nodes)), tuple(command), time_limit)
        return {node: _result(answer) for node, answer in answers.items()}

    def ports_tried(self, neighbour: NodeName, address: str, ports: Sequence[int]) -> CommandResult:
        """What these ports of another host answer that node: a second vantage point (hands 2)."""
        command = port_command(address, ports)
        return _result(self._ask((neighbour,), command, self._settings.read_limit)[neighbour])

    def _change(self, verb: str, node: NodeName, unit: str, effect_id: str) -> CommandResult:
        command = change_command(
            verb, checked_unit(unit, self._settings), effect_id, self._settings
        )
        limit = self._settings.start_limit + 2 * _KILL_AFTER
        return _result(self._ask((node,), command, limit)[node])

    def _ask(
        self,
        nodes: tuple[NodeName, ...],
        command: tuple[str, ...],
        limit: timedelta,
        *,
        options: tuple[str, ...] = (),
    ) -> dict[NodeName, Answer]:
        """Ask these nodes; every name is checked before any process is started."""
        nodes = tuple(node_name(node) for node in nodes)
        seconds = max(1, int(limit.total_seconds()))
        killed = ("timeout", "-k", str(int(_KILL_AFTER.total_seconds())), str(seconds))
        whole = limit + 2 * _KILL_AFTER + self._settings.connect_limit
        question = Question(
            nodes=nodes,
            command=shlex.join((*killed, *command)),
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
