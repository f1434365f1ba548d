"""The main job through the command line, with no Slack anywhere, on a real Slurm."""

import pytest

from bot.testbed import SlurmTestbed
from tests.e2e.deaths import assert_told, killed
from tests.e2e.served import ServedBot

pytestmark = [pytest.mark.e2e, pytest.mark.slurm]

HOSTILE = 'Xid 79 "quoted" <#C1> בדיקה'


def test_a_killed_slurmd_is_started_and_the_job_goes_on(
    bot: ServedBot, settled: SlurmTestbed
) -> None:
    settled.admin_drain("gpu-05", HOSTILE)
    job = settled.train(["gpu-01", "gpu-02"])
    death = killed(settled, "gpu-01")
    plan = bot.ask("plan", "node-dropped", "gpu-01")
    assert "A1 slurmd is dead" in plan.text
    assert "if nobody acts" in plan.text
    answer = bot.json("run", "node-dropped", "gpu-01")
    card = answer.card
    assert card["state"] == "succeeded", answer.text
    assert any("A1 slurmd was dead" in line for line in card["lines"])
    assert_told(death, "\n".join(card["lines"]))
    assert any("did service.start gpu-01" in line for line in card["lines"])
    settled.wait_for_next_step(job, "gpu-01")
    facts = settled.job(job.id)
    assert facts["JobState"] == "RUNNING"
    assert facts["Restarts"] == "0"
    assert "sound" in bot.ask("audit", "verify").text
    foreign = settled.node("gpu-05")
    assert "DRAIN" in foreign["State"]
    assert foreign["Reason"].startswith("Xid")
    settled.cancel(job.id)
    settled.admin_resume("gpu-05")


def test_an_admins_drain_is_told_with_owner_and_age_and_not_touched(
    bot: ServedBot, settled: SlurmTestbed
) -> None:
    settled.admin_drain("gpu-06", "RMA 4711")
    before = settled.node("gpu-06")
    card = bot.json("run", "node-dropped", "gpu-06").card
    assert card["state"] == "succeeded"
    text = "\n".join(card["lines"])
    assert "A13" in text
    assert settled.options.admin_user in text
    assert "changed" not in text.replace("changed nothing", "")
    assert settled.node("gpu-06")["Reason"] == before["Reason"]
    refused = bot.json("drain", "gpu-06", "mine")
    assert refused.card["state"] == "failed"
    assert settled.node("gpu-06")["Reason"] == before["Reason"]
    settled.admin_resume("gpu-06")


def test_a_gpu_that_fell_off_is_told_as_a4b_and_a_person_decides(
    bot: ServedBot, settled: SlurmTestbed
) -> None:
    settled.shrink_gres("gpu-08", 7)
    settled.set_gpus_seen("gpu-08", 7)
    settled.wait_for_states("gpu-08", "IDLE", "DRAIN", "INVALID_REG")
    answer = bot.json("run", "node-dropped", "gpu-08")
    assert answer.card["state"] == "needs_person"
    assert any("A4b" in line for line in answer.card["lines"])
    bot.ask("abort", answer.run, "tested")
    settled.restore_gres("gpu-08")
    settled.set_gpus_seen("gpu-08", 8)
    settled.admin_resume("gpu-08")


def test_a_node_is_drained_and_returned_in_the_bots_own_name(
    bot: ServedBot, settled: SlurmTestbed
) -> None:
    assert bot.json("drain", "gpu-07", "fan noise").card["state"] == "succeeded"
    node = settled.node("gpu-07")
    assert "DRAIN" in node["State"]
    assert node["Reason"].startswith("nw")
    assert bot.json("return", "gpu-07").card["state"] == "succeeded"
    settled.wait_for_states("gpu-07", "IDLE")


@pytest.mark.parametrize(
    "expression",
    ['@x";touch F;"', "*", "gpu-[1-30000000]", "-oProxyCommand=x", "gpu-01\n", "gpu-[01-99]", ""],
)
def test_a_hostile_or_unknown_name_is_refused_and_nothing_is_done(
    bot: ServedBot, expression: str
) -> None:
    before = bot.ask("list", "runs", "--all").text
    answer = bot.ask("drain", "--", expression, "reason")
    assert answer.code in {1, 2}, answer.text
    assert bot.ask("list", "runs", "--all").text == before
