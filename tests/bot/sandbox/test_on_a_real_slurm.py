"""The demo as `make demo` runs it, and what becomes of the job when nobody starts the bot."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bot.sandbox.demo import job_lives
from bot.sandbox.slurm import SlurmPlayground
from bot.sandbox.waiting import wait_for
from bot.testbed import SlurmTestbed, TestbedOptions
from tests.patience import DEADLINE
from tests.testbed.fixture import fresh_folder

ROOT = Path(__file__).parents[3]
pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(bool(SlurmTestbed.missing()), reason=SlurmTestbed.missing()),
]


def test_the_demo_saves_a_training_job_and_ends_by_itself() -> None:
    with fresh_folder() as place:
        place.mkdir(mode=0o755)
        environment = {
            **os.environ,
            "TMPDIR": str(place),
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "120",
        }
        done = subprocess.run(
            [sys.executable, "-m", "bot.cli", "sandbox", "--demo"],
            capture_output=True,
            text=True,
            env=environment,
            cwd="/",
            timeout=2 * DEADLINE,
            check=False,
        )
        left = list(place.iterdir())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The bot runs on a real slurm-wlm" in done.stdout
    assert "A1 slurmd was dead" in done.stdout
    assert "went on with its next step" in done.stdout
    assert "RUNNING, Restarts 0" in done.stdout
    assert "IDLE+DRAIN, Reason: fan is loud, vendor comes" in done.stdout
    assert "the audit log verifies: sound" in done.stdout
    assert left == []


def test_without_the_bot_the_same_job_dies() -> None:
    with fresh_folder() as folder:
        testbed = SlurmTestbed(folder, nodes=3, options=TestbedOptions(slurmd_timeout=15))
        playground = SlurmPlayground(testbed)
        try:
            job = playground.train(("gpu-01", "gpu-02"))
            assert job_lives(playground, job).holds
            playground.kill_slurmd("gpu-01")
            wait_for(lambda: not job_lives(playground, job).holds, "the job to die")
        finally:
            playground.stop()


def test_each_plug_of_the_page_does_to_slurm_what_it_says() -> None:
    with fresh_folder() as folder:
        playground = SlurmPlayground(SlurmTestbed(folder, nodes=3))
        try:
            plugs = playground.node_plugs
            plugs["lose a GPU"]("gpu-03")
            node = playground.view().node("gpu-03")
            assert node is not None
            assert "INVALID_REG" in node.words
            plugs["all GPUs back"]("gpu-03")
            plugs["a person resumes it"]("gpu-03")
            plugs["a person drains it"]("gpu-02")
            node = playground.view().node("gpu-02")
            assert node is not None
            assert (node.words, node.reason) == (("IDLE", "DRAIN"), "fan is loud, vendor comes")
            playground.cluster_plugs["submit a job"]()
            wait_for(lambda: playground.view().jobs[0].state == "RUNNING", "the job to run")
            playground.cluster_plugs["end the newest job"]()
            playground.cluster_plugs["controller down"]()
            assert playground.view().trouble
            playground.cluster_plugs["controller up"]()
            assert not playground.view().trouble
        finally:
            playground.stop()
