"""Opens the way to the power of one cluster's machines, as its section `power` says.

Called by `actions.catalogue`. Asks no BMC; the password is resolved at each request.
"""

from pathlib import Path

from actions.power.https import Line
from actions.power.ipmitool import Ipmitool
from actions.power.redfish import Redfish, Secrets
from actions.power.script import Script
from actions.power.unpowered import NoPower
from actions.power_hands import PowerHands
from actions.shell import Runner
from config.power_settings import Power, PowerKind


def open_power(power: Power | None, runner: Runner, secrets: Secrets) -> PowerHands:
    """Hands for this section; hands that refuse where it is missing or lacks what its kind needs."""
    match power:
        case Power(kind=PowerKind.REDFISH, user=str(user), password=password) if password:
            return Redfish(
                line=Line(ca_file=power.ca_file, limit=power.time_limit),
                bmc=power.bmc_of,
                user=user,
                password=password,
                secrets=secrets,
            )
        case Power(kind=PowerKind.IPMITOOL, user=str(user), password=password) if password:
            return Ipmitool(
                runner=runner,
                bmc=power.bmc_of,
                user=user,
                password=password,
                secrets=secrets,
                limit=power.time_limit,
            )
        case Power(kind=PowerKind.SCRIPT, script=Path() as script):
            return Script(runner=runner, bmc=power.bmc_of, script=script, limit=power.time_limit)
        case _:
            return NoPower()
