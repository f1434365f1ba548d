"""How a site lets the bot reach the power of its machines: the section `power` of a cluster.

Used by `config.settings`; what must fit together is in `config.cross_checks`. Pure.
"""

import re
from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator

from config.durations import parse_duration
from config.fields import AbsolutePath, Duration, Nodes, Secret, Section
from config.node_names import NodeName

_ADDRESS = re.compile(r"[A-Za-z0-9{][A-Za-z0-9{}.-]{0,250}(:[1-9][0-9]{0,4})?", re.ASCII)
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}", re.ASCII)
_NUMBER = re.compile(r"[0-9]+$", re.ASCII)
_PLACES = re.compile(r"\{[^}]*\}|[{}]")


class PowerKind(StrEnum):
    """How machines are switched."""

    REDFISH = "redfish"
    """Over https, as the DMTF's standard says."""
    IPMITOOL = "ipmitool"
    """With the program ipmitool, over IPMI 2.0 (lanplus)."""
    SCRIPT = "script"
    """With a program of the site's own."""
    SIMULATED = "simulated"
    """The machines of the simulated cluster."""


def read_address(value: object) -> str:
    """A BMC's address with places for the node. Raises ValueError."""
    expected = (
        'a host name or address is expected, as "{node}-bmc.example" or "10.1.0.{number}:443"'
    )
    if not isinstance(value, str) or not _ADDRESS.fullmatch(value):
        raise ValueError(expected)
    if set(_PLACES.findall(value)) - {"{node}", "{number}"}:
        raise ValueError(
            "only {node} and {number}, the digits at the end of its name, have a value"
        )
    return value


def _user(value: object) -> str:
    if not isinstance(value, str) or not _USER.fullmatch(value):
        raise ValueError("a user name of letters, digits, '_', '.', '@', '-' is expected")
    return value


def address_of(template: str, node: NodeName) -> str:
    """The address of this node's BMC; empty where its name has no number and one is wanted."""
    number = _NUMBER.search(node)
    if "{number}" in template and number is None:
        return ""
    digits = str(int(number[0])) if number else ""
    return template.replace("{node}", node).replace("{number}", digits)


class Bmc(Section):
    """The BMCs of some nodes."""

    nodes: Nodes
    """The nodes, as `gpu-[001-016]`."""
    address: Annotated[str, BeforeValidator(read_address)]
    """Host name or address of the BMC, with a port where it is not the usual one. `{node}` stands for
    the node's name, `{number}` for the digits at its end without leading zeros."""


class Power(Section):
    """The way to the power of a cluster's machines."""

    kind: PowerKind
    """redfish, ipmitool, script, or simulated for the simulated cluster."""
    bmc: tuple[Bmc, ...] = ()
    """BMC addresses by node set; a node that no entry names cannot be switched. Needed for every kind
    but simulated. Default: none."""
    user: Annotated[str, BeforeValidator(_user)] | None = None
    """The bot's own account on the BMCs, needed for redfish and ipmitool; it needs the right to reset
    machines (IPMI: OPERATOR) and no other. Default: none."""
    password: Secret | None = None
    """Its password, as `env:NAME` or `file:/path`. Default: none."""
    ca_file: AbsolutePath | None = None
    """PEM file with the certificates that sign those of the BMCs, for kind redfish. A certificate that
    does not fit is never accepted. Default: the system's."""
    script: AbsolutePath | None = None
    """The site's program, for kind script; called with `status`, `off`, `on`, `cycle` or `log` and the
    BMC's address. Default: none."""
    time_limit: Duration = parse_duration("20s")
    """So long one request to a BMC may take. Default: 20s."""

    def bmc_of(self, node: NodeName) -> str:
        """The address of this node's BMC; empty where none is configured."""
        return next(
            (address_of(entry.address, node) for entry in self.bmc if node in entry.nodes), ""
        )
