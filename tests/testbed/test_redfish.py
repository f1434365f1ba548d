"""The BMCs of the testbed speak Redfish, switch real machines, and lie when they are told to."""

import base64
import json
import ssl
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPSConnection, RemoteDisconnected
from pathlib import Path
from typing import Any

import pytest

from bot.testbed import SlurmTestbed
from bot.testbed.redfish import BmcFault, BmcRack
from bot.testbed.requirements import program
from tests.testbed.reboots import resume_after_a_reboot

pytestmark = pytest.mark.skipif(not program("openssl"), reason="openssl is not installed")

_SYSTEM = "/redfish/v1/Systems/1"


class Machines:
    """Power in a dictionary."""

    def __init__(self) -> None:
        self.states = {"n01": "on", "n02": "on"}
        self.boots: list[str] = []

    def power(self, node: str) -> str:
        return self.states[node]

    def power_off(self, node: str) -> None:
        self.states[node] = "off"

    def power_on(self, node: str) -> None:
        self.states[node] = "on"
        self.boots.append(node)

    def reboot(self, node: str) -> None:
        self.power_on(node)


@pytest.fixture
def machines() -> Machines:
    return Machines()


@pytest.fixture
def rack(machines: Machines, tmp_path: Path) -> Iterator[BmcRack]:
    with BmcRack(machines, ("n01", "n02"), tmp_path) as started:
        yield started


def _request(
    rack: BmcRack, node: str, path: str, reset: str = "", seconds: float = 5
) -> tuple[int, dict[str, Any]]:
    context = ssl.create_default_context(cafile=str(rack.ca_file))
    words = f"{rack.user}:{rack.password}".encode()
    headers = {"Authorization": f"Basic {base64.b64encode(words).decode()}"}
    body = json.dumps({"ResetType": reset}) if reset else None
    line = HTTPSConnection(rack.bmcs[node].address, timeout=seconds, context=context)
    with closing(line):
        line.request("POST" if reset else "GET", path, body, headers)
        answer = line.getresponse()
        return answer.status, json.loads(answer.read() or b"{}")


def _ask(rack: BmcRack, node: str, path: str = _SYSTEM) -> dict[str, Any]:
    status, value = _request(rack, node, path)
    assert status == 200
    return value


def _reset(rack: BmcRack, node: str, kind: str, seconds: float = 5) -> int:
    path = f"{_SYSTEM}/Actions/ComputerSystem.Reset"
    return _request(rack, node, path, kind, seconds)[0]


def test_a_system_shows_its_power_and_its_resets(rack: BmcRack, machines: Machines) -> None:
    listed = _ask(rack, "n01", "/redfish/v1/Systems")["Members"]
    system = _ask(rack, "n01")

    assert listed == [{"@odata.id": _SYSTEM}]
    assert (system["PowerState"], system["HostName"]) == ("On", "n01")
    action = system["Actions"]["#ComputerSystem.Reset"]
    assert "ForceOff" in action["ResetType@Redfish.AllowableValues"]
    machines.power_off("n02")
    assert _ask(rack, "n02")["PowerState"] == "Off"


def test_a_reset_reaches_the_machine(rack: BmcRack, machines: Machines) -> None:
    _reset(rack, "n02", "ForceOff")
    off = dict(machines.states)
    _reset(rack, "n02", "On")
    _reset(rack, "n02", "On")
    _reset(rack, "n01", "PowerCycle")

    assert off == {"n01": "on", "n02": "off"}
    assert machines.boots == ["n02", "n01"]
    assert rack.bmcs["n02"].resets == ["ForceOff", "On", "On"]


def test_without_the_password_nothing_is_shown(rack: BmcRack) -> None:
    context = ssl.create_default_context(cafile=str(rack.ca_file))
    with closing(HTTPSConnection(rack.bmcs["n01"].address, timeout=5, context=context)) as line:
        line.request("GET", _SYSTEM)
        status = line.getresponse().status

    assert status == 401


def test_a_client_that_does_not_trust_the_certificate_asks_nothing(rack: BmcRack) -> None:
    context = ssl.create_default_context()
    with (
        closing(HTTPSConnection(rack.bmcs["n01"].address, timeout=5, context=context)) as line,
        pytest.raises(ssl.SSLCertVerificationError),
    ):
        line.request("GET", _SYSTEM)


def test_one_line_of_configuration_names_all_bmcs(rack: BmcRack) -> None:
    named = [rack.address_template.replace("{number}", str(number)) for number in (1, 2)]

    assert named == [rack.bmcs["n01"].address, rack.bmcs["n02"].address]


def test_a_lying_bmc_says_off_of_a_machine_that_runs(rack: BmcRack, machines: Machines) -> None:
    rack.bmcs["n01"].fault = BmcFault.LIES

    assert _ask(rack, "n01")["PowerState"] == "Off"
    assert machines.power("n01") == "on"


def test_a_bmc_may_accept_a_reset_and_do_nothing(rack: BmcRack, machines: Machines) -> None:
    rack.bmcs["n01"].fault = BmcFault.IDLE
    _reset(rack, "n01", "ForceOff")

    assert machines.power("n01") == "on"
    assert rack.bmcs["n01"].resets == ["ForceOff"]


def test_an_answer_may_be_lost_after_the_deed(rack: BmcRack, machines: Machines) -> None:
    rack.bmcs["n01"].fault = BmcFault.ANSWER_LOST
    with pytest.raises(RemoteDisconnected):
        _reset(rack, "n01", "ForceOff")

    assert machines.power("n01") == "off"


@pytest.mark.parametrize(("fault", "status"), [(BmcFault.BROKEN, 500), (BmcFault.MOVED, 307)])
def test_a_bmc_that_answers_otherwise_does_nothing(
    rack: BmcRack, machines: Machines, fault: BmcFault, status: int
) -> None:
    rack.bmcs["n01"].fault = fault

    assert _reset(rack, "n01", "ForceOff") == status
    assert machines.power("n01") == "on"


def test_a_silent_bmc_does_nothing(rack: BmcRack, machines: Machines) -> None:
    rack.bmcs["n01"].fault = BmcFault.SILENT
    with pytest.raises(TimeoutError):
        _reset(rack, "n01", "ForceOff", seconds=0.3)

    assert machines.power("n01") == "on"


def test_the_event_log_holds_what_was_put_there(rack: BmcRack) -> None:
    rack.bmcs["n01"].log.append(("Critical", "PSU 2 lost input"))
    entries = _ask(rack, "n01", f"{_SYSTEM}/LogServices/SEL/Entries")["Members"]

    assert [(entry["Severity"], entry["Message"]) for entry in entries] == [
        ("Critical", "PSU 2 lost input")
    ]


@pytest.mark.slurm
def test_a_bmc_switches_a_virtual_node(slurm_testbed: SlurmTestbed, tmp_path: Path) -> None:
    boot = slurm_testbed.boot_id("gpu-12")
    with BmcRack(slurm_testbed, slurm_testbed.nodes, tmp_path) as rack:
        _reset(rack, "gpu-12", "ForceOff")
        off = _ask(rack, "gpu-12")["PowerState"], _ask(rack, "gpu-11")["PowerState"]
        _reset(rack, "gpu-12", "On")
        on = _ask(rack, "gpu-12")["PowerState"]
    slurm_testbed.wait_for(lambda: "DOWN" in slurm_testbed.node_states("gpu-12"), "the new boot")
    resume_after_a_reboot(slurm_testbed, "gpu-12")

    assert (off, on) == (("Off", "On"), "On")
    assert slurm_testbed.boot_id("gpu-12") != boot
