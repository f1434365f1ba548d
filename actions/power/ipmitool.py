"""`PowerHands` with the program ipmitool, over IPMI 2.0.

Constructed by `actions.catalogue`. The password travels in the child's environment, never among its
arguments, which every user of the host can read.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from actions.contract import Refusal, Rejected, Unreadable, WriteUnknown
from actions.power.redfish import LONGEST_LOG, Secrets
from actions.power_hands import PowerReading, PowerState
from actions.shell import Command, CommandFinished, Runner
from config.node_names import NodeName
from config.secret_store import SecretError
from config.secrets import SecretRef

_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
_STATUS = re.compile(r"Chassis Power is (on|off)", re.ASCII)
_SESSION = re.compile(
    r"Unable to establish|Error: Unable to|Could not open socket|Address lookup for|RAKP", re.ASCII
)
"""No session: no command reached the BMC."""
_SAID_NO = re.compile(r"Set Chassis Power Control to \S+ failed: (.+)", re.ASCII)
_DONE = {
    "off": re.compile(r"Chassis Power Control: Down/Off"),
    "on": re.compile(r"Chassis Power Control: Up/On"),
    "cycle": re.compile(r"Chassis Power Control: Cycle"),
}
_EVENTS = "200"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ipmitool:
    """BMCs that speak IPMI."""

    runner: Runner
    bmc: Callable[[NodeName], str]
    """Host and perhaps port of a node's BMC; empty where it has none."""
    user: str
    password: SecretRef
    secrets: Secrets
    limit: timedelta
    path: str = _PATH
    """Where the program is looked for."""

    def status(self, node: NodeName) -> PowerReading:
        """`chassis power status`."""
        host = self._host(node)
        done = self._run(host, "chassis", "power", "status")
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        found = _STATUS.fullmatch(lines[0].strip()) if len(lines) == 1 and done.ok else None
        if found is None:
            raise Unreadable(f"{host}: {_said(done)}")
        return PowerReading(
            state=PowerState(found[1]), evidence=lines[0].strip()[:120], source=host
        )

    def off(self, node: NodeName, effect_id: str) -> None:
        """`chassis power off`: at once, without the operating system."""
        self._switch(node, "off")

    def on(self, node: NodeName, effect_id: str) -> None:
        """`chassis power on`."""
        self._switch(node, "on")

    def cycle(self, node: NodeName, effect_id: str) -> None:
        """`chassis power cycle`."""
        self._switch(node, "cycle")

    def event_log(self, node: NodeName) -> str:
        """`sel list last 200`."""
        host = self._host(node)
        done = self._run(host, "sel", "list", "last", _EVENTS)
        if not done.ok:
            raise Unreadable(f"{host}: {_said(done)}")
        return done.stdout.strip()[-LONGEST_LOG:]

    def _switch(self, node: NodeName, verb: str) -> None:
        host = self._host(node)
        done = self._run(host, "chassis", "power", verb)
        if done.ok and _DONE[verb].search(done.stdout):
            return
        if not done.started:
            raise Unreadable(f"{done.lost}: nothing was sent")
        refused = _SAID_NO.search(done.stderr)
        if refused is not None and not done.ok:
            raise Rejected(f"{host}: {refused[0][:160]}")
        if done.exit_code is not None and not done.ok and _SESSION.search(done.stderr):
            raise Unreadable(f"{host}: {_said(done)}; nothing was sent")
        raise WriteUnknown(f"{host}: {_said(done)}")

    def _run(self, host: str, *words: str) -> CommandFinished:
        """Raises Unreadable where the password cannot be had."""
        try:
            password = self.secrets.resolve(self.password)
        except SecretError as error:
            raise Unreadable(f"the password of the BMCs: {error}") from None
        name, _, port = host.partition(":")
        where = ("-H", name, *(("-p", port) if port else ()))
        # By itself it waits 20 s for a BMC that is not there, as long as a site may let it take.
        patience = ("-N", "2", "-R", "2")
        account = ("-U", self.user, "-E", "-L", "OPERATOR")
        argv = ("ipmitool", "-I", "lanplus", *where, *account, *patience)
        return self.runner.run(
            Command(
                argv=(*argv, *words),
                time_limit=self.limit,
                environment={"PATH": self.path, "LC_ALL": "C", "IPMI_PASSWORD": password},
                output_cap=1 << 16,
            )
        )

    def _host(self, node: NodeName) -> str:
        host = self.bmc(node)
        if not host:
            raise Refusal(f"{node} has no BMC address in the settings: add it under power.bmc")
        return host


def _said(done: CommandFinished) -> str:
    """What the program said, on one line."""
    text = done.stderr.strip() or done.stdout.strip() or done.lost or f"exit code {done.exit_code}"
    return " ".join(text.split())[:160]
