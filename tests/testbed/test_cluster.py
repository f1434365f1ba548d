"""What a started testbed is: nodes, users, configuration."""

import subprocess
import sys

import pytest

import config.node_names
from bot.testbed import SlurmTestbed, TestbedError

pytestmark = pytest.mark.slurm


def _as_bot(testbed: SlurmTestbed, *argv: str) -> str:
    done = subprocess.run(testbed.as_bot(argv), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_twelve_nodes_are_idle(slurm_testbed: SlurmTestbed) -> None:
    assert len(slurm_testbed.nodes) == 12
    for node in slurm_testbed.nodes:  # a job of an earlier test may still be ending
        slurm_testbed.wait_for_states(node, "IDLE")
    assert slurm_testbed.node("gpu-12")["Gres"] == "gpu:h100:8"


def test_partitions_overlap_as_designed(slurm_testbed: SlurmTestbed) -> None:
    shown = {name: slurm_testbed.partition(name)["Nodes"] for name in ("train", "short", "spare")}

    assert shown == {"train": "gpu-[01-08]", "short": "gpu-[07-10]", "spare": "gpu-[11-12]"}


def test_the_bot_is_neither_root_nor_slurm(slurm_testbed: SlurmTestbed) -> None:
    users = slurm_testbed.run("ps", "-C", "slurmctld", "-o", "user=,args=").splitlines()
    controller = next(line.split()[0] for line in users if str(slurm_testbed.folder) in line)
    bot = _as_bot(slurm_testbed, "id", "-un").strip()

    assert bot == slurm_testbed.bot_user
    assert controller == "slurm"
    assert bot not in {"root", "slurm"}
    assert _as_bot(slurm_testbed, "id", "-u").strip() != "0"


def test_the_bots_user_can_run_this_program(slurm_testbed: SlurmTestbed) -> None:
    code = "import config.node_names, sys; print(config.node_names.__file__, sys.version_info[:2])"
    shown = _as_bot(slurm_testbed, *slurm_testbed.bot_python(), "-c", code)

    assert shown == f"{config.node_names.__file__} {sys.version_info[:2]}\n"


def test_the_bot_drains_and_resumes(slurm_testbed: SlurmTestbed) -> None:
    _as_bot(slurm_testbed, "scontrol", "update", "NodeName=gpu-09", "State=DRAIN", "Reason=look")
    shown = slurm_testbed.run("scontrol", "show", "node", "gpu-09")
    _as_bot(slurm_testbed, "scontrol", "update", "NodeName=gpu-09", "State=RESUME")

    assert "State=IDLE+DRAIN" in shown
    assert f"Reason=look [{slurm_testbed.bot_user}@" in shown
    slurm_testbed.wait_for_states("gpu-09", "IDLE")


def test_the_job_user_may_not_drain(slurm_testbed: SlurmTestbed) -> None:
    with pytest.raises(TestbedError, match="Invalid user id"):
        slurm_testbed.run_as(
            slurm_testbed.options.job_user,
            *("scontrol", "update", "NodeName=gpu-09", "State=DRAIN", "Reason=no"),
        )

    assert slurm_testbed.node_states("gpu-09") == {"IDLE"}


def test_every_listener_is_inside_the_testbed(slurm_testbed: SlurmTestbed) -> None:
    layout = slurm_testbed.layout
    here = subprocess.check_output(["ss", "-Htln"], text=True)
    there = slurm_testbed.run("ss", "-Htln")

    ports = {layout.controller_port, layout.accounting_port, layout.slurmd_port}
    assert not ports & {port for _, port in _listening(here)}
    assert layout.host_address not in {address for address, _ in _listening(here)}
    assert {address for address, _ in _listening(there)} == {
        "127.0.0.1",
        layout.controller_address,
    }


def _listening(lines: str) -> set[tuple[str, int]]:
    local = (line.split()[3].rpartition(":") for line in lines.splitlines())
    return {(address, int(port)) for address, _, port in local}


def test_each_node_has_its_own_address(slurm_testbed: SlurmTestbed) -> None:
    layout = slurm_testbed.layout
    wanted = {node: layout.address(node) for node in slurm_testbed.nodes}

    assert len(set(wanted.values())) == 12
    assert {node: slurm_testbed.node(node)["NodeAddr"] for node in wanted} == wanted


def test_accounting_knows_a_finished_job(slurm_testbed: SlurmTestbed) -> None:
    number = slurm_testbed.submit("#!/bin/sh\ntrue\n", "--partition=spare")
    slurm_testbed.wait_for_job(number, "COMPLETED")
    argv = ("sacct", "--noheader", "--parsable2", "--allocations", "--format=State,Account")
    wanted = "COMPLETED|research"

    slurm_testbed.wait_for(
        lambda: slurm_testbed.run(*argv, f"--jobs={number}").strip() == wanted,
        "the record in sacct",
    )
