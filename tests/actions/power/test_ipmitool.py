"""ipmitool as a real process: a small program in its place says what the real one says."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from actions.contract import Refusal, Rejected, Unreadable, WriteUnknown
from actions.power.ipmitool import Ipmitool
from actions.power_hands import PowerState
from actions.shell import Runner
from config.node_names import NodeName
from config.secret_store import SecretStore
from config.secrets import SecretRef
from tests.patience import DEADLINE

NODE = NodeName("gpu-01")
PASSWORD = "canary-ipmi-7f3a"
PROGRAM = """#!/usr/bin/python3
import json, os, sys, time
folder = os.path.dirname(os.path.abspath(__file__))
with open(folder + "/called", "w") as called:
    json.dump({"argv": sys.argv[1:], "env": dict(os.environ)}, called)
play = json.load(open(folder + "/play"))
sys.stdout.write(play["out"])
sys.stderr.write(play["err"])
sys.stdout.flush()
if play["hangs"]:
    time.sleep(600)
sys.exit(play["code"])
"""


class Stage:
    """What the program says next, and how it was called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        program = folder / "ipmitool"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        self.power = Ipmitool(
            runner=Runner(),
            bmc=lambda node: "gpu-01-bmc:6230" if node == NODE else "",
            user="nodewarden",
            password=SecretRef("env:BMC_PASSWORD"),
            secrets=SecretStore({"BMC_PASSWORD": PASSWORD}),
            limit=timedelta(seconds=DEADLINE),
            path=f"{folder}:/usr/bin:/bin",
        )

    def says(self, out: str, err: str = "", code: int = 0, *, hangs: bool = False) -> None:
        play = {"out": out, "err": err, "code": code, "hangs": hangs}
        (self.folder / "play").write_text(json.dumps(play))

    def called(self) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.folder / "called").read_text())
        return found


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.mark.parametrize("word", ["on", "off"])
def test_it_says_the_power(stage: Stage, word: str) -> None:
    stage.says(f"Chassis Power is {word}\n")
    found = stage.power.status(NODE)
    assert found.state is PowerState(word)
    assert (found.evidence, found.source) == (f"Chassis Power is {word}", "gpu-01-bmc:6230")


def test_the_password_is_in_no_argument(stage: Stage) -> None:
    stage.says("Chassis Power is on\n")
    stage.power.status(NODE)
    called = stage.called()
    assert called["argv"] == [
        *("-I", "lanplus", "-H", "gpu-01-bmc", "-p", "6230", "-U", "nodewarden", "-E"),
        *("-L", "OPERATOR", "-N", "2", "-R", "2", "chassis", "power", "status"),
    ]
    environment = called["env"]
    assert isinstance(environment, dict)
    assert environment["IPMI_PASSWORD"] == PASSWORD
    assert set(environment) <= {"IPMI_PASSWORD", "PATH", "LC_ALL", "LC_CTYPE"}


@pytest.mark.parametrize(
    "out, code",
    [
        ("Chassis Power is off\n", 1),
        ("Chassis Power is of\n", 0),
        ("Chassis Power is off\nChassis Power is on\n", 0),
        ("", 0),
        ("power is off", 0),
    ],
)
def test_anything_else_is_not_off(stage: Stage, out: str, code: int) -> None:
    stage.says(out, code=code)
    with pytest.raises(Unreadable):
        stage.power.status(NODE)


@pytest.mark.parametrize(
    "verb, said",
    [
        ("off", "Chassis Power Control: Down/Off"),
        ("on", "Chassis Power Control: Up/On"),
        ("cycle", "Chassis Power Control: Cycle"),
    ],
)
def test_each_verb_is_one_command(stage: Stage, verb: str, said: str) -> None:
    stage.says(f"{said}\n")
    getattr(stage.power, verb)(NODE, "e1")
    argv = stage.called()["argv"]
    assert isinstance(argv, list)
    assert argv[-3:] == ["chassis", "power", verb]


def test_a_session_that_did_not_come_about_sent_nothing(stage: Stage) -> None:
    stage.says("", "Error: Unable to establish IPMI v2 / RMCP+ session\n", 1)
    with pytest.raises(Unreadable, match="nothing was sent"):
        stage.power.off(NODE, "e1")


def test_what_the_bmc_refuses_did_not_happen(stage: Stage) -> None:
    stage.says(
        "", "Set Chassis Power Control to Down/Off failed: Insufficient privilege level\n", 1
    )
    with pytest.raises(Rejected, match="Insufficient privilege"):
        stage.power.off(NODE, "e1")


@pytest.mark.parametrize(
    "out, err, code",
    [("", "Segmentation fault", 139), ("", "", 1), ("Chassis Power Control: Up/On\n", "", 0)],
)
def test_what_cannot_be_told_may_have_happened(stage: Stage, out: str, err: str, code: int) -> None:
    stage.says(out, err, code)
    with pytest.raises(WriteUnknown):
        stage.power.off(NODE, "e1")


def test_a_program_that_hangs_may_have_switched(stage: Stage) -> None:
    stage.says("", hangs=True)
    power = replace(stage.power, limit=timedelta(seconds=1))
    with pytest.raises(WriteUnknown, match="did not end within"):
        power.off(NODE, "e1")
    with pytest.raises(Unreadable, match="did not end within"):
        power.status(NODE)


def test_without_the_program_nothing_was_sent(stage: Stage, tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="nothing was sent"):
        replace(stage.power, path=str(tmp_path / "nowhere")).off(NODE, "e1")


def test_a_node_without_a_bmc_is_refused(stage: Stage) -> None:
    with pytest.raises(Refusal, match="gpu-99 has no BMC address"):
        stage.power.off(NodeName("gpu-99"), "e1")


def test_the_event_log_is_its_end(stage: Stage) -> None:
    stage.says("a\n" * 10_000 + "the last event\n")
    log = stage.power.event_log(NODE)
    assert log.endswith("the last event")
    assert len(log) <= 8000
