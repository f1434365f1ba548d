"""Node access as a site has it: a real sshd, an ordinary user, real sudo, the installed program."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from actions.contract import Refusal, Unreadable
from actions.node_readings import PortAnswer
from actions.remote.access_check import AccessCheck
from actions.remote.installing import authorized_keys
from actions.remote.nodes import RemoteNodes
from actions.remote.packing import digest
from actions.remote.program_words import PROGRAM
from actions.remote.settings import RemoteSettings
from actions.remote_values import Reach, ServiceState
from actions.shell import Runner
from bot.testbed import SlurmTestbed
from bot.testbed.preparation import keygen
from bot.testbed.root_access import root_of
from config.node_access import NodeAccess
from config.node_names import NodeName
from config.system_clock import SystemClock
from tests.patience import DEADLINE

pytestmark = pytest.mark.slurm

A, B = NodeName("gpu-03"), NodeName("gpu-04")
EFFECT = "nw-0a1b2c3d-run-9-start-1"


@pytest.fixture
def settings(slurm_testbed: SlurmTestbed) -> RemoteSettings:
    return RemoteSettings(
        ssh_config=slurm_testbed.ssh_config,
        connect_limit=timedelta(seconds=DEADLINE),
        access=NodeAccess.SUDO,
    )


@pytest.fixture
def nodes(settings: RemoteSettings) -> Iterator[RemoteNodes]:
    hands = RemoteNodes(
        settings, Runner(), SystemClock(), redact=lambda text: text, connected=lambda: True
    )
    yield hands
    hands.close()


def _note(testbed: SlurmTestbed, node: str, effect: str) -> dict[str, object]:
    place = root_of(testbed.layout, node) / "run/nodewarden-helper/effects" / effect
    found: dict[str, object] = json.loads(place.read_text())
    return found


def test_a_dead_slurmd_is_started_by_sudo_once(
    slurm_testbed: SlurmTestbed, nodes: RemoteNodes
) -> None:
    slurm_testbed.kill_slurmd(A)
    assert nodes.service(A, "slurmd").state is ServiceState.FAILED
    assert nodes.start_service(A, "slurmd", EFFECT).ok
    started = nodes.service(A, "slurmd")
    again = nodes.start_service(A, "slurmd", EFFECT)
    assert (started.state, started.kill_mode, started.delegate) == (
        ServiceState.ACTIVE,
        "process",
        "yes",
    )
    assert again.ok
    assert "nothing was done now" in again.errors
    assert nodes.service(A, "slurmd").main_pid == started.main_pid
    assert _note(slurm_testbed, A, EFFECT)["what"] == ["service-start", "slurmd"]
    assert _note(slurm_testbed, A, EFFECT)["code"] == 0


def test_what_a_restart_under_jobs_is_judged_from_is_all_read(
    slurm_testbed: SlurmTestbed, nodes: RemoteNodes
) -> None:
    facts = nodes.host_facts(A)
    node = slurm_testbed.node(A)
    assert facts.munge_ok is True
    assert facts.gres_seen == node["Gres"] == "gpu:h100:8"
    assert facts.slurmd_version == node["Version"]
    assert (facts.cpus, facts.memory_mib) == (int(node["CPUTot"]), int(node["RealMemory"]))
    assert facts.clock_offset_ms == 0
    assert facts.boot_id == slurm_testbed.boot_id(A)


def test_without_sudos_leave_nothing_is_done_and_doctor_says_what_to_do(
    slurm_testbed: SlurmTestbed, nodes: RemoteNodes, settings: RemoteSettings
) -> None:
    check = AccessCheck(nodes, settings, Runner())
    assert check.faults(B) == ()
    drop_in = root_of(slurm_testbed.layout, B) / "etc/sudoers.d/nodewarden"
    before = drop_in.read_text()
    slurm_testbed.kill_slurmd(B)
    try:
        drop_in.write_text("# nobody\n")
        (fault,) = check.faults(B)
        with pytest.raises(Refusal, match="helper install"):
            nodes.start_service(B, "slurmd", EFFECT)
        with pytest.raises(Unreadable, match="helper install"):
            nodes.host_facts(B)
        assert slurm_testbed.unit(B)["state"] == "failed"
    finally:
        drop_in.write_text(before)
        slurm_testbed.start_slurmd(B)
    assert "sudo on gpu-04 does not let" in fault


def test_a_jobs_files_and_stacks_are_read_and_another_node_is_tried(
    slurm_testbed: SlurmTestbed, nodes: RemoteNodes
) -> None:
    job = slurm_testbed.train([A])
    user, jobs = slurm_testbed.options.job_user, slurm_testbed.layout.jobs
    try:
        found = nodes.stacks(A, job.id)
        tail = nodes.file_tail(A, user, str(job.journal), 4096)
        listed = nodes.file_list(A, user, str(jobs), "*.journal")
    finally:
        slurm_testbed.cancel(job.id)
    assert "sh" in {one.name for one in found}
    assert tail.text.splitlines()[0].split()[:2] == ["1", A]
    assert job.journal.name in {entry.name for entry in listed.entries}
    with pytest.raises(Refusal, match="below no root"):
        nodes.file_tail(A, user, str(slurm_testbed.slurm_conf), 10)
    tried = nodes.tcp_try(A, B, [22, 9])
    assert [one.answer for one in tried] == [PortAnswer.OPEN, PortAnswer.REFUSED]


@pytest.fixture
def bound(slurm_testbed: SlurmTestbed, settings: RemoteSettings) -> Iterator[RemoteNodes]:
    """Hands whose key is bound to the program on every node, as the bot's ordinary user."""
    folder = slurm_testbed.folder / "ssh"
    keygen(folder / "bound", slurm_testbed.bot_user)
    keys, config = folder / "authorized_keys", folder / "bound.config"
    before = keys.read_text()
    keys.write_text(before + authorized_keys((folder / "bound.pub").read_text()))
    identity = str(slurm_testbed.layout.identity)
    config.write_text(slurm_testbed.ssh_config.read_text().replace(identity, str(folder / "bound")))
    hands = RemoteNodes(
        replace(settings, ssh_config=config, access=NodeAccess.FORCED),
        Runner(),
        SystemClock(),
        redact=str,
        connected=lambda: True,
    )
    yield hands
    hands.close()
    keys.write_text(before)


def test_a_bound_key_of_an_ordinary_user_reaches_the_program_through_sudo(
    slurm_testbed: SlurmTestbed, bound: RemoteNodes
) -> None:
    assert bound.reach(A).reach is Reach.ALIVE
    assert bound.installed(A) == digest()
    assert bound.boot_ids((A, B))[B].value == slurm_testbed.boot_id(B)
    slurm_testbed.kill_slurmd(A)
    assert bound.start_service(A, "slurmd", f"{EFFECT}-bound").ok
    assert bound.service(A, "slurmd").state is ServiceState.ACTIVE
    with pytest.raises(Refusal, match="not in the list"):
        replace_units(bound, "sshd").restart_service(A, "sshd", f"{EFFECT}-sshd")


def replace_units(hands: RemoteNodes, unit: str) -> RemoteNodes:
    """The same hands where the bot's own list has the unit, and the node's has not."""
    hands._settings = replace(hands._settings, units=frozenset({unit}))
    return hands


def test_a_process_of_a_job_gets_nothing_by_the_program(slurm_testbed: SlurmTestbed) -> None:
    script = (
        f"#!/bin/sh\nsudo -n {PROGRAM} version; echo sudo $?\n{PROGRAM} version; echo plain $?\n"
    )
    number = slurm_testbed.submit(script, "--nodelist=gpu-11", "--partition=spare")
    slurm_testbed.wait_for_job(number, "COMPLETED")
    output = Path(slurm_testbed.layout.jobs / f"{number}.out").read_text()
    assert "sudo 1\n" in output
    assert "plain 64\n" in output
    assert "digest" not in output
