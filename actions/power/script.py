"""`PowerHands` with a program of the site's own, for whatever speaks neither Redfish nor IPMI.

Constructed by `actions.catalogue`. It is called as `[script, verb, address]` with an empty environment;
its secrets are its own. What it must answer:

* `status`: exit code 0 and one word: on, off or unknown.
* `off`, `on`, `cycle`: exit code 0 once the request is accepted.
* `log`: exit code 0 and the hardware's events as text.
* exit code 3: refused, nothing changed. Exit code 4: not reached, nothing changed.
* everything else, a time-out too: it may have happened.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from actions.contract import Refusal, Rejected, Unreadable, WriteUnknown
from actions.power.redfish import LONGEST_LOG
from actions.power_hands import PowerReading, PowerState
from actions.shell import Command, CommandFinished, Runner
from config.node_names import NodeName

REFUSED = 3
NOT_REACHED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Machines that a program switches."""

    runner: Runner
    bmc: Callable[[NodeName], str]
    """What the program gets as the address of a node; empty where it has none."""
    script: Path
    limit: timedelta

    def status(self, node: NodeName) -> PowerReading:
        """`status`."""
        address = self._address(node)
        done = self._run("status", address)
        word = done.stdout.strip()
        if not done.ok or word not in set(PowerState):
            raise Unreadable(f"{self.script.name} status {address}: {_said(done)}")
        return PowerReading(
            state=PowerState(word), evidence=f"{self.script.name} says {word}", source=address
        )

    def off(self, node: NodeName, effect_id: str) -> None:
        """`off`."""
        self._switch("off", node)

    def on(self, node: NodeName, effect_id: str) -> None:
        """`on`."""
        self._switch("on", node)

    def cycle(self, node: NodeName, effect_id: str) -> None:
        """`cycle`."""
        self._switch("cycle", node)

    def event_log(self, node: NodeName) -> str:
        """`log`."""
        address = self._address(node)
        done = self._run("log", address)
        if not done.ok:
            raise Unreadable(f"{self.script.name} log {address}: {_said(done)}")
        return done.stdout.strip()[-LONGEST_LOG:]

    def _switch(self, verb: str, node: NodeName) -> None:
        address = self._address(node)
        done = self._run(verb, address)
        if done.ok:
            return
        said = f"{self.script.name} {verb} {address}: {_said(done)}"
        if not done.started or done.exit_code == NOT_REACHED:
            raise Unreadable(f"{said}; nothing was sent")
        if done.exit_code == REFUSED:
            raise Rejected(said)
        raise WriteUnknown(said)

    def _run(self, verb: str, address: str) -> CommandFinished:
        return self.runner.run(
            Command(
                argv=(str(self.script), verb, address),
                time_limit=self.limit,
                environment={"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"},
                output_cap=1 << 16,
            )
        )

    def _address(self, node: NodeName) -> str:
        address = self.bmc(node)
        if not address:
            raise Refusal(f"{node} has no BMC address in the settings: add it under power.bmc")
        return address


def _said(done: CommandFinished) -> str:
    text = done.stderr.strip() or done.stdout.strip() or done.lost or f"exit code {done.exit_code}"
    return " ".join(text.split())[:160]
