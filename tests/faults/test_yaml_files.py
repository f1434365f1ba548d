"""YAML as people write it in a hurry: runbook and configuration files are read as text or refused."""

import json
import shutil
from pathlib import Path

import pytest

from runbooks.library_files import SHIPPED
from tests.faults.answers import told
from tests.faults.bots import ROOT, Yard, command, here

RUNBOOK = """\
runbook: rest
version: 1
title: Look at a node
permission: node.read
parameters:
  node: {type: node, help: its name}
steps:
  - id: facts
    do: node.observe
    with: {node: "{{ node }}"}
"""
CONFIG = """\
bot: {data_folder: /var/lib/nodewarden}
clusters:
  sim:
    kind: simulated
    simulated_socket: /run/sim.sock
    pools: {all: {nodes: "gpu-[1-6]", max_out: 2}}
    protected: login-1
people:
  ann: {os_users: [ann], roles: [oncall]}
pages:
  - {kind: webhook, url: "http://127.0.0.1:9/"}
"""
TRAPS = {
    "a time that is a number to base 60": "1:30",
    "no": "no",
    "a leading zero": "010",
    "a version that is no decimal": "1.10",
    "a date": "2026-11-30",
    "an octal number": "0o17",
    "not a number": ".nan",
    "a tag": "!!python/object:os.system x",
    "an alias": "*ann",
}


@pytest.mark.parametrize("what", TRAPS)
def test_a_runbook_with_a_value_that_yaml_turns_into_something_else(
    tmp_path: Path, what: str
) -> None:
    file = tmp_path / "rest.yaml"
    file.write_text(RUNBOOK.replace("Look at a node", TRAPS[what]))
    answer = here("runbook", "lint", str(file))
    assert answer.code == 1
    told(f"runbook lint: {what}", answer.errors, {str(tmp_path): "<folder>"})


@pytest.mark.parametrize("what", TRAPS)
def test_a_configuration_with_a_value_that_yaml_turns_into_something_else(
    tmp_path: Path, what: str
) -> None:
    file = tmp_path / "nodewarden.yaml"
    file.write_text(CONFIG.replace("protected: login-1", f"protected: {TRAPS[what]}"))
    answer = here("config", "check", "--config", str(file))
    assert answer.code == 1
    told(f"config check: {what}", answer.errors, {str(tmp_path): "<folder>"})


BROKEN = {
    "a duplicate key": (b"title: Look", b"version: 2\ntitle: Look"),
    "a key that is unknown": (b"title: Look", b"titles: x\ntitle: Look"),
    "a tab": (b"  - id: facts", b"\t- id: facts"),
    "bytes that are not UTF-8": (b"Look at", b"Look \xff at"),
    "an action that is none": (b"node.observe", b"node.obsreve"),
    "a shell in a key": (b"title: Look", b'"\\e[31m$(touch F)": 1\ntitle: Look'),
    "a template that calls": (b"{{ node }}", b"{{ node.__class__.mro() }}"),
    "a second document": (b"title: Look", b"---\ntitle: Look"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_runbook_that_is_wrong_is_told_where(tmp_path: Path, what: str) -> None:
    file = tmp_path / "rest.yaml"
    file.write_bytes(RUNBOOK.encode().replace(*BROKEN[what], 1))
    answer = here("runbook", "lint", str(file))
    assert answer.code == 1
    assert "\x1b" not in answer.text
    told(f"runbook lint: {what}", answer.errors, {str(tmp_path): "<folder>"})


def test_a_duplicate_key_in_the_configuration_is_told_where(tmp_path: Path) -> None:
    file = tmp_path / "nodewarden.yaml"
    file.write_text(CONFIG.replace("people:\n", "people:\n  ann: {roles: [admin]}\n"))
    answer = here("config", "check", "--config", str(file))
    assert answer.code == 1
    told("config check: a duplicate key", answer.errors, {str(tmp_path): "<folder>"})


def test_a_key_with_an_escape_of_a_terminal_is_spelled_out(tmp_path: Path) -> None:
    file = tmp_path / "nodewarden.yaml"
    file.write_text(CONFIG + '"\\e[31mred\\nline": 1\n')
    answer = here("config", "check", "--config", str(file))
    assert answer.code == 1
    assert "\x1b" not in answer.text
    told("config check: an escape in a key", answer.errors, {str(tmp_path): "<folder>"})


TEN_ERRORS = """\
bot: {data_folder: relative/path, colour: red}
clusters:
  sim:
    kind: simulatd
    pools:
      all: {nodes: "gpu-[1-30000000]", max_out: 0}
    protected: "*"
people:
  ann: {os_users: [ann], roles: [onkall]}
  bob: {os_users: [ann], roles: [oncall]}
roles:
  night: {node.drian: {}}
slack: {bot_token: xoxb-canary-raw-1234567890, app_token: env:APP, team: T0}
pages:
  - {kind: webhook, token: canary-page-token}
"""


def test_ten_errors_are_all_told_at_once_with_file_line_and_key(tmp_path: Path) -> None:
    file = tmp_path / "nodewarden.yaml"
    file.write_text(TEN_ERRORS)
    answer = here("config", "check", "--config", str(file))
    assert answer.code == 1
    lines = answer.errors.splitlines()
    assert len(lines) >= 10
    assert all(line.startswith(f"{file}:") for line in lines)
    assert "canary" not in answer.text, "a secret in the wrong place is not shown"
    told("config check: ten errors", answer.errors, {str(tmp_path): "<folder>"})


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    for words in (("config", "check", "--config"), ("runbook", "lint")):
        answer = here(*words, str(tmp_path / "none.yaml"))
        assert answer.code == 2
        assert "does not exist" in answer.errors


# -- the runbook commands -------------------------------------------------------------------------


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A site's own library with one draft."""
    folder = tmp_path / "library" / "rest"
    folder.mkdir(parents=True)
    (folder / "v1.yaml").write_text(RUNBOOK)
    return tmp_path


def test_what_ships_is_clean() -> None:
    assert command("runbook", "lint").out == "good: nothing is wrong\n"
    assert json.loads(here("runbook", "lint", "--json").out) == {"good": True, "problems": []}


def test_a_file_is_released_once_and_never_edited(library: Path) -> None:
    file = library / "library" / "rest" / "v1.yaml"
    assert here("runbook", "lint", str(library)).code == 0
    assert here("runbook", "release", str(file)).out == "released: library/rest/v1.yaml\n"
    again = here("runbook", "release", str(file))
    assert again.code == 1
    told("runbook release: again", again.errors)
    file.write_text(RUNBOOK.replace("Look at", "Stare at"))
    for words in (("lint", str(library)), ("lint", str(file)), ("release", str(file))):
        answer = here("runbook", *words)
        assert answer.code == 1
        told(f"runbook {words[0]}: edited after its release", answer.errors)
    listed = json.loads(here("runbook", "lint", "--json", str(library)).out)
    assert [row["file"] for row in listed["problems"]] == ["library/rest/v1.yaml"]


def test_a_version_that_is_left_out_is_refused(library: Path) -> None:
    folder = library / "library" / "rest"
    (folder / "v1.yaml").rename(folder / "v3.yaml")
    (folder / "v3.yaml").write_text(RUNBOOK.replace("version: 1", "version: 3"))
    answer = here("runbook", "release", str(folder / "v3.yaml"))
    assert answer.code == 1
    told("runbook release: a version left out", answer.errors)


def test_a_file_outside_of_a_library_cannot_be_released(tmp_path: Path) -> None:
    file = tmp_path / "rest.yaml"
    file.write_text(RUNBOOK)
    answer = here("runbook", "release", str(file))
    assert answer.code == 1
    told("runbook release: outside", answer.errors, {str(tmp_path): "<folder>"})


def test_a_difference_is_told_by_meaning_and_by_text(library: Path) -> None:
    old = library / "library" / "rest" / "v1.yaml"
    new = library / "new.yaml"
    new.write_text(RUNBOOK.replace("node.read", "node.drain").replace("version: 1", "version: 2"))
    answer = here("runbook", "diff", str(old), str(new))
    assert answer.code == 1
    assert answer.out.splitlines()[0] == "permission: node.read -> node.drain"
    assert here("runbook", "diff", str(old), str(old)).code == 0
    assert json.loads(here("runbook", "diff", "--json", str(old), str(old)).out)["same"]
    assert here("runbook", "diff", str(old), str(ROOT / "Makefile")).code == 2


def test_a_runbook_is_played_against_a_description(library: Path) -> None:
    described = library / "night.yaml"
    described.write_text('parameters: {nodes: [gpu-001, gpu-002], reason: "RMA 4711"}\n')
    answer = here("runbook", "test", "drain-node", str(described))
    assert answer.code == 0, answer
    assert "node.drain(node=gpu-001, reason=RMA 4711)" in answer.out
    steps = json.loads(here("runbook", "test", "--json", "drain-node", str(described)).out)
    assert {row["verb"] for row in steps["steps"]} >= {"acts"}
    described.write_text("parameters: {node: gpu-001}\n")
    file = library / "library" / "rest" / "v1.yaml"
    assert "node.observe(node=gpu-001)" in here("runbook", "test", str(file), str(described)).out


@pytest.mark.parametrize(
    ("what", "runbook", "text"),
    [
        ("a runbook that is none", "drian-node", "parameters: {}\n"),
        ("a file that is none", "/etc/passwd", "parameters: {}\n"),
        ("a parameter that is missing", "drain-node", "parameters: {}\n"),
        ("a node that is none", "return-node", "parameters: {node: '*'}\n"),
        ("a key that is unknown", "return-node", "parameter: {node: gpu-001}\n"),
    ],
)
def test_a_rehearsal_that_cannot_be_played_says_why(
    tmp_path: Path, what: str, runbook: str, text: str
) -> None:
    described = tmp_path / "night.yaml"
    described.write_text(text)
    answer = here("runbook", "test", runbook, str(described))
    assert answer.code == 1
    told(f"runbook test: {what}", answer.errors, {str(tmp_path): "<folder>"})


def test_a_bot_with_a_runbook_that_was_edited_after_its_release_does_not_start(
    place: Yard,
) -> None:
    program = place.folder / "program"
    for package in ("bot", "runbooks", "actions", "audit_log", "config"):
        shutil.copytree(
            ROOT / package, program / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    file = program / "runbooks" / "library" / "drain-node" / "v1.yaml"
    assert (SHIPPED / "library" / "drain-node" / "v1.yaml").read_text() == file.read_text()
    with file.open("a") as handle:
        handle.write("# one more line\n")
    bot = place.bot(program=program)
    bot.launch()
    bot.wait(lambda: not bot.lives, "its end")
    assert bot.stop() == 1
    told("serve: a runbook edited after its release", bot.refusal, place.folders)
    assert not bot.socket.exists()
    file.write_text((SHIPPED / "library" / "drain-node" / "v1.yaml").read_text())
    bot.start()
    assert "run-1" in bot.lines("drain", "gpu-068", "x")
