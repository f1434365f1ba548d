"""A1 over real ssh as an ordinary user: sudo and one program are the only way to the start."""

import pytest

from bot.testbed import SlurmTestbed
from bot.testbed.root_access import root_of
from tests.e2e.served import ServedBot

pytestmark = [pytest.mark.e2e, pytest.mark.slurm]

NODE = "gpu-07"
"""No other test has effects noted there."""


def _notes(testbed: SlurmTestbed, run: str) -> list[str]:
    """Effects of this run that the node itself has noted."""
    place = root_of(testbed.layout, NODE) / "run/nodewarden-helper/effects"
    return [note.name for note in place.glob(f"nw-*-{run}-*")]


def test_the_start_of_a_dead_slurmd_is_an_effect_that_the_node_has_noted(
    bot: ServedBot, settled: SlurmTestbed
) -> None:
    job = settled.train([NODE, "gpu-08"])
    settled.kill_slurmd(NODE)
    answer = bot.json("run", "node-dropped", NODE)
    assert answer.card["state"] == "succeeded", answer.text
    settled.wait_for_next_step(job, NODE)
    facts = settled.job(job.id)
    settled.cancel(job.id)
    assert (facts["JobState"], facts["Restarts"]) == ("RUNNING", "0")
    assert len(_notes(settled, answer.run)) == 1


def test_doctor_has_tried_the_way_to_nodes(bot: ServedBot, settled: SlurmTestbed) -> None:
    settled.wait_for(lambda: "the way to gpu-" in bot.ask("doctor").text, "doctor to have looked")
    text = bot.ask("doctor").text
    assert "is in order" in next(line for line in text.splitlines() if "the way to gpu-" in line)


def test_without_sudos_leave_nothing_is_changed_and_a_person_is_asked(
    bot: ServedBot, settled: SlurmTestbed
) -> None:
    drop_in = root_of(settled.layout, NODE) / "etc/sudoers.d/nodewarden"
    before = drop_in.read_text()
    drop_in.write_text("# nobody\n")
    settled.kill_slurmd(NODE)
    try:
        answer = bot.json("run", "node-dropped", NODE)
        state = settled.unit(NODE)["state"]
    finally:
        drop_in.write_text(before)
        bot.ask("abort", answer.run, "tested")
    text = "\n".join(answer.card["lines"])
    assert (state, answer.card["state"]) == ("failed", "needs_person"), answer.text
    assert "facts were not read" in text
    assert "changed nothing" in text
    assert _notes(settled, answer.run) == []
    assert bot.json("run", "node-dropped", NODE).card["state"] == "succeeded"
