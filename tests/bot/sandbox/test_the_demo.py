"""The main job plays by itself, and it is the bot that saves the job."""

import io
from datetime import timedelta
from pathlib import Path

from rich.console import Console

from bot.sandbox.demo import FOREIGN, NODES, Demo, job_lives
from bot.sandbox.sandbox import Sandbox
from bot.sandbox.stage import Screen


def _play(box: Sandbox) -> tuple[bool, str]:
    shown = io.StringIO()
    good = Demo(sandbox=box, screen=Screen(Console(file=shown, width=120))).play()
    return good, shown.getvalue()


def test_the_bot_saves_the_job_and_every_claim_of_the_table_holds(lively: Sandbox) -> None:
    good, text = _play(lively)
    assert good, text
    assert "A1 slurmd was dead" in text
    assert "did service.start gpu-01" in text
    assert "RUNNING, Restarts 0" in text
    assert "fan is loud, vendor comes" in text
    assert "the audit log verifies: sound" in text
    assert "NO  " not in text


def test_without_the_bot_the_same_job_dies(still: Sandbox) -> None:
    playground = still.playground
    job = playground.train(NODES)
    assert job_lives(playground, job).holds
    playground.kill_slurmd(NODES[0])
    for _ in range(4):
        playground.cluster_plugs["clock +1 min"]()
    assert not job_lives(playground, job).holds


def test_a_drain_that_somebody_took_away_meanwhile_is_found(lively: Sandbox) -> None:
    class Meddling(Screen):
        def line(self, since: timedelta, text: str) -> None:
            super().line(since, text)
            if "types /ops run" in text:
                lively.playground.node_plugs["a person resumes it"](FOREIGN)

    shown = io.StringIO()
    screen = Meddling(Console(file=shown, width=120))
    assert not Demo(sandbox=lively, screen=screen).play()
    assert "NO  the other person's drain is untouched: gpu-05 is IDLE" in shown.getvalue()


def test_the_readme_shows_what_the_demo_shows(lively: Sandbox) -> None:
    readme = (Path(__file__).parents[3] / "README.md").read_text("utf-8")
    _, text = _play(lively)
    told = text.partition("What happened")[2].splitlines()
    claims = [line.strip().removeprefix("yes").strip() for line in told if " yes " in line]
    assert len(claims) == 4
    for claim in claims:
        assert claim.partition(":")[0] in readme
