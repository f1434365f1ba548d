"""Rules of the BMCs: what they say of the power, and what they do when asked. Called by `world`.

A BMC lives on its own power and network, so it answers while its host is silent; it can also lie.
"""

from enum import StrEnum

from actions.contract import Rejected, Unreadable
from actions.power_hands import PowerReading, PowerState
from actions.simulated import host_rules
from actions.simulated.machines import BmcMood, Host
from actions.simulated.state import State


class PowerVerb(StrEnum):
    """What a BMC can be asked to do."""

    OFF = "power_off"
    ON = "power_on"
    CYCLE = "power_cycle"


def status(host: Host) -> PowerReading:
    """What the BMC says. Raises Unreadable."""
    host.bmc_asked += 1
    if host.bmc is BmcMood.SILENT:
        raise Unreadable(f"no answer from {host.name}-bmc within its time limit")
    said = PowerState.ON if host.fed else PowerState.OFF
    if host.bmc is BmcMood.SAYS_OFF or (host.bmc is BmcMood.FLICKERS and host.bmc_asked % 2):
        said = PowerState.OFF
    return PowerReading(state=said, evidence=f"PowerState {said.value}", source=f"{host.name}-bmc")


def switch(state: State, host: Host, verb: PowerVerb) -> None:
    """Do what was asked for. Raises Unreadable (nothing was sent), Rejected."""
    if host.bmc is BmcMood.SILENT:
        raise Unreadable(f"no connection to {host.name}-bmc: nothing was sent")
    if host.bmc is BmcMood.REFUSES:
        raise Rejected("HTTP 403: insufficient privilege")
    host.event_log.append(f"{state.now:%Y-%m-%dT%H:%M:%SZ} OK {verb.value} over the network")
    if host.bmc is BmcMood.DEAF:
        return
    if verb is not PowerVerb.ON:
        host_rules.power_off(state, host, "")
    if verb is not PowerVerb.OFF:
        host_rules.power_on(state, host, host_rules.BOOT_TIME)


def event_log(host: Host) -> str:
    """The hardware's own log. Raises Unreadable."""
    if host.bmc is BmcMood.SILENT:
        raise Unreadable(f"no answer from {host.name}-bmc within its time limit")
    return "\n".join(host.event_log)
