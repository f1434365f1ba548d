"""Effects: once for each name, one at a time, noted before and after."""

import fcntl
import os
import select
import signal
import subprocess
from pathlib import Path

import pytest

from actions.remote.on_node import effects
from actions.remote.on_node.site import Site
from tests.actions.remote.on_node.installed import Installed
from tests.patience import DEADLINE

BUSY, UNKNOWN = 75, 76


def test_an_effect_is_carried_out_once_and_the_second_time_says_so(node: Installed) -> None:
    node.counting()
    first = node.run("service-start", "slurmd", "nw-a-run-1-start-1")
    second = node.run("service-start", "slurmd", "nw-a-run-1-start-1")
    assert (first.code, second.code) == (0, 0)
    assert node.started() == ["--no-ask-password start -- slurmd"]
    assert "nothing was done now" in second.err


def test_another_attempt_is_another_effect(node: Installed) -> None:
    node.counting()
    assert node.run("service-restart", "slurmd", "nw-a-run-1-start-1").code == 0
    assert node.run("service-restart", "slurmd", "nw-a-run-1-start-2").code == 0
    assert len(node.started()) == 2


def test_what_the_first_became_is_what_the_second_tells(node: Installed) -> None:
    node.counting("echo Job for slurmd.service failed >&2; exit 3")
    first = node.run("service-start", "slurmd", "nw-a-1")
    node.counting()
    second = node.run("service-start", "slurmd", "nw-a-1")
    assert (first.code, second.code) == (3, 3)
    assert "Job for slurmd.service failed" in first.err
    assert "Job for slurmd.service failed" in second.err
    assert len(node.started()) == 1


def test_one_name_never_stands_for_two_effects(node: Installed) -> None:
    node.counting()
    node.run("service-start", "slurmd", "nw-a-1")
    other = node.run("service-start", "munge", "nw-a-1")
    assert other.code == 64
    assert len(node.started()) == 1


def test_only_one_effect_at_a_time(node: Installed) -> None:
    node.counting()
    node.run("service-start", "slurmd", "nw-a-1")
    with (node.state / "effect.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = node.run("service-start", "slurmd", "nw-a-2")
    assert done.code == BUSY
    assert len(node.started()) == 1
    assert node.run("service-start", "slurmd", "nw-a-2").code == 0


def _killed_in_the_middle(node: Installed, gate: Path) -> int:
    """The program is killed while systemctl runs; the number of the systemctl that lives on."""
    os.mkfifo(gate)
    os.mkfifo(node.root / "began")
    node.counting(f"echo $$ > {node.root}/began; cat {gate}")
    argv = [str(node.program), "service-start", "slurmd", "nw-a-1"]
    program = subprocess.Popen(argv, env={"PATH": "/usr/bin:/bin"})
    child = int((node.root / "began").read_text())
    program.send_signal(signal.SIGKILL)
    program.wait(DEADLINE)
    return child


def test_killed_in_the_middle_it_is_under_way_while_systemctl_lives_and_unknown_after(
    node: Installed,
) -> None:
    gate = node.root / "gate"
    child = os.pidfd_open(_killed_in_the_middle(node, gate))
    under_way = node.run("service-start", "slurmd", "nw-a-1")
    other = node.run("service-start", "munge", "nw-a-2")
    gate.write_text("go on\n")
    with os.fdopen(child) as ended:
        select.select([ended], [], [], DEADLINE)
    after = node.run("service-start", "slurmd", "nw-a-1")
    assert (under_way.code, other.code, after.code) == (BUSY, BUSY, UNKNOWN)
    assert "its end was never noted" in after.err
    assert len(node.started()) == 1


def test_an_effect_over_its_time_limit_has_no_code_to_believe(
    node: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.tool("systemctl", "exec sleep 1000")
    monkeypatch.setattr(effects, "LIMIT", 0.2)
    path = f"{node.tools}:/usr/bin:/bin"
    site = Site(program=str(node.program), state=str(node.state), path=path)
    effect = effects.Effect("nw-a-1", "service-start", ("slurmd",))
    found = effects.carry_out(effect, effects.change_unit("start", "slurmd", site), site)
    again = effects.carry_out(effect, effects.change_unit("start", "slurmd", site), site)
    assert (found.code, again.code) == (124, 124)
    assert "did not end within" in found.err


def test_where_systemd_runs_an_effect_is_a_transient_unit_of_its_name(
    node: Installed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(effects, "_SYSTEMD", str(tmp_path))
    node.counting()
    # A stand-in for systemd-run: notes its options and runs what comes after `--`.
    asked = node.root / "unit"
    node.tool(
        "systemd-run",
        f'echo "$*" > {asked}; while [ "$1" != -- ]; do shift; done; shift; exec "$@"',
    )
    site = Site(
        program=str(node.program), state=str(node.state), path=f"{node.tools}:/usr/bin:/bin"
    )
    effect = effects.Effect("nw-a-1", "service-start", ("slurmd",))
    found = effects.ask(effect, effects.change_unit("start", "slurmd", site), site)
    assert found.code == 0
    assert "--unit=nw-a-1 --collect --wait --quiet --property=RuntimeMaxSec=70" in asked.read_text()
    assert node.started() == ["--no-ask-password start -- slurmd"]


def test_a_systemd_that_starts_no_unit_is_a_failure_with_its_words(
    node: Installed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(effects, "_SYSTEMD", str(tmp_path))
    node.counting()
    node.tool("systemd-run", "echo Failed to start transient service unit >&2; exit 1")
    site = Site(
        program=str(node.program), state=str(node.state), path=f"{node.tools}:/usr/bin:/bin"
    )
    effect = effects.Effect("nw-a-1", "service-start", ("slurmd",))
    found = effects.ask(effect, effects.change_unit("start", "slurmd", site), site)
    assert found.code == 1
    assert "Failed to start transient" in found.err
    assert node.started() == []


def test_a_folder_of_notes_that_is_not_roots_own_is_not_used(node: Installed) -> None:
    node.counting()
    node.state.mkdir(parents=True)
    node.state.chmod(0o777)
    done = node.run("service-start", "slurmd", "nw-a-1")
    assert done.code == 1
    assert "root's own" in done.err
    assert node.started() == []
