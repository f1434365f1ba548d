"""The real ipmitool against a real IPMI 2.0 service: the words that the adapter knows are its own."""

import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from actions.contract import Unreadable
from actions.power.ipmitool import Ipmitool
from actions.power_hands import PowerState
from actions.shell import Runner
from config.node_names import NodeName
from config.secret_store import SecretStore
from config.secrets import SecretRef
from tests.patience import DEADLINE

NODE = NodeName("gpu-01")
PROGRAMS = ("ipmitool", "ipmi_sim")
MISSING = [name for name in PROGRAMS if shutil.which(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {' and '.join(MISSING)}")

LAN = """
name "bmc"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {port}
    priv_limit admin
    allowed_auths_operator none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  chassis_control "{chassis}"
  user 1 true "" "test" user 10 none md2 md5 straight
  user 2 true "nodewarden" "secret" operator 10 none md2 md5 straight
"""
COMMANDS = """mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
mc_enable 0x20
"""
CHASSIS = """#!/bin/sh
while [ $# -gt 0 ]; do
  case "$1" in
    get) shift; echo "$1:$(cat {power})" ;;
    set) shift; [ "$1" = power ] && echo "$2" > {power}; shift ;;
  esac
  shift
done
"""


@contextmanager
def simulated_bmc(folder: Path) -> Iterator[tuple[int, Path]]:
    """A port and the file with its power."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = int(taken.getsockname()[1])
    power, chassis = folder / "power", folder / "chassis"
    power.write_text("1\n")
    chassis.write_text(CHASSIS.format(power=power))
    chassis.chmod(0o755)
    (folder / "lan.conf").write_text(LAN.format(port=port, chassis=chassis))
    (folder / "commands").write_text(COMMANDS)
    (folder / "state").mkdir()
    program = [str(shutil.which("ipmi_sim")), "-c", str(folder / "lan.conf")]
    program += ["-f", str(folder / "commands"), "-s", str(folder / "state")]
    # It ends when its standard input does.
    child = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    ready = threading.Event()
    reader = threading.Thread(target=_read, args=(child, ready))
    reader.start()
    try:
        assert ready.wait(DEADLINE), "ipmi_sim did not begin to serve"
        yield port, power
    finally:
        child.kill()
        child.wait()
        reader.join()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()


def _read(child: "subprocess.Popen[bytes]", ready: threading.Event) -> None:
    """Its prompt comes once it has read its commands."""
    while child.stdout is not None and (line := child.stdout.read(1)):
        if line == b">":
            ready.set()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    with simulated_bmc(tmp_path_factory.mktemp("ipmi")) as found:
        yield found


@pytest.fixture
def power(served: tuple[int, Path]) -> Ipmitool:
    return Ipmitool(
        runner=Runner(),
        bmc=lambda _: f"127.0.0.1:{served[0]}",
        user="nodewarden",
        password=SecretRef("env:BMC"),
        secrets=SecretStore({"BMC": "secret", "WRONG": "calvin"}),
        limit=timedelta(seconds=DEADLINE),
    )


def test_it_switches_and_says_so(power: Ipmitool, served: tuple[int, Path]) -> None:
    power.off(NODE, "e1")
    assert served[1].read_text() == "0\n"
    assert power.status(NODE).state is PowerState.OFF
    power.on(NODE, "e2")
    assert served[1].read_text() == "1\n"


def test_who_is_not_let_in_sends_nothing(power: Ipmitool, served: tuple[int, Path]) -> None:
    stranger = replace(power, password=SecretRef("env:WRONG"))
    with pytest.raises(Unreadable, match="nothing was sent"):
        stranger.off(NODE, "e1")
    assert served[1].read_text() == "1\n"


def test_a_bmc_that_is_not_there_is_known_before_the_time_limit(power: Ipmitool) -> None:
    nobody = replace(power, bmc=lambda _: "127.0.0.1:9", limit=timedelta(seconds=20))
    with pytest.raises(Unreadable, match="Unable to establish"):
        nobody.off(NODE, "e1")
