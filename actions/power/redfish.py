"""`PowerHands` over Redfish: https with the BMC's certificate checked.

Constructed by `actions.catalogue`. The password is resolved for each call and kept nowhere; what was
read is kept nowhere either, because a BMC that was replaced has other paths.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from actions.contract import Refusal, Unreadable
from actions.power import redfish_words as words
from actions.power.https import Account, Line, get, post
from actions.power_hands import PowerReading
from config.json_values import JsonMap
from config.node_names import NodeName
from config.secret_store import SecretError
from config.secrets import SecretRef

LONGEST_LOG = 8000
"""Characters of the event log that are kept, its end."""


class Secrets(Protocol):
    """`config.secret_store.SecretStore`."""

    def resolve(self, reference: SecretRef) -> str:
        """The secret. Raises SecretError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Redfish:
    """BMCs that speak Redfish."""

    line: Line
    bmc: Callable[[NodeName], str]
    """Host and port of a node's BMC; empty where it has none."""
    user: str
    password: SecretRef
    secrets: Secrets

    def status(self, node: NodeName) -> PowerReading:
        """What the BMC says of the power."""
        host, account = self._door(node)
        system = self._system(host, account)
        return PowerReading(
            state=words.power_state(system), evidence=words.evidence(system), source=host
        )

    def off(self, node: NodeName, effect_id: str) -> None:
        """ForceOff."""
        self._reset(node, "off")

    def on(self, node: NodeName, effect_id: str) -> None:
        """On."""
        self._reset(node, "on")

    def cycle(self, node: NodeName, effect_id: str) -> None:
        """PowerCycle, or ForceRestart where there is none."""
        self._reset(node, "cycle")

    def event_log(self, node: NodeName) -> str:
        """The end of the log service that holds most likely the hardware's events."""
        host, account = self._door(node)
        services = words.link(self._system(host, account).get("LogServices"), host)
        listed = words.members(get(self.line, host, services, account), host)
        for path in words.event_logs(listed)[:1]:
            entries = words.link(get(self.line, host, path, account).get("Entries"), host)
            lines = "\n".join(words.entries(get(self.line, host, entries, account)))
            return lines[-LONGEST_LOG:]
        return ""

    def _reset(self, node: NodeName, verb: str) -> None:
        host, account = self._door(node)
        path, kind = words.reset(self._system(host, account), verb)
        post(self.line, host, path, account, {"ResetType": kind})

    def _door(self, node: NodeName) -> tuple[str, Account]:
        """Whom to ask, and as whom. Raises Refusal, Unreadable."""
        host = self.bmc(node)
        if not host:
            raise Refusal(f"{node} has no BMC address in the settings: add it under power.bmc")
        try:
            return host, Account(user=self.user, password=self.secrets.resolve(self.password))
        except SecretError as error:
            raise Unreadable(f"the password of the BMCs: {error}") from None

    def _system(self, host: str, account: Account) -> JsonMap:
        """The one system of this BMC."""
        listed = get(self.line, host, words.SYSTEMS, account)
        path = words.only_system(words.members(listed, host))
        return get(self.line, host, path, account)
