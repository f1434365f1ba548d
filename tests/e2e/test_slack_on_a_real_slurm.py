"""The main job from a Slack command to a repaired node: real Bolt, real Slurm, real processes."""

import re
from collections.abc import Iterator

import pytest

from bot.standin.records import HOME_TEAM
from bot.standin.server import SlackStandIn
from bot.testbed import SlurmTestbed
from config.system_clock import SystemClock
from tests.actions.page.test_a_real_alertmanager import Running, alertmanager
from tests.bot.lenient import LENIENT
from tests.e2e.deaths import assert_told, killed
from tests.e2e.served import ServedBot

__all__ = ["alertmanager"]

pytestmark = [pytest.mark.e2e, pytest.mark.slurm]

SLACK = """\
slack:
  bot_token: env:NW_TEST_BOT_TOKEN
  app_token: env:NW_TEST_APP_TOKEN
  team: {team}
  api_url: {url}
"""


class Shift:
    """A workspace with two people on call and one who only watches, and the bot in it."""

    def __init__(self, slack: SlackStandIn, bot: ServedBot, pages: Running) -> None:
        self.slack = slack
        self.bot = bot
        self.pages = pages


@pytest.fixture
def shift(settled: SlurmTestbed, alertmanager: Running) -> Iterator[Shift]:
    with SlackStandIn(SystemClock(), strictness=LENIENT) as slack:
        people = {name: slack.person(name) for name in ("ann", "ben", "vic")}
        ops = slack.channel("#ops")
        ids = {name: f"{HOME_TEAM}/{person.user.id}" for name, person in people.items()}
        bot = ServedBot(
            settled,
            settled.folder / f"shift-{slack.base_url.rsplit(':', 1)[1].split('/')[0]}",
            slack=SLACK.format(team=HOME_TEAM, url=slack.base_url),
            channel=ops.stored.id,
            pager_port=alertmanager.url.rpartition(":")[2],
            **ids,
        )
        bot.environment = {
            "NW_TEST_BOT_TOKEN": slack.bot_token,
            "NW_TEST_APP_TOKEN": slack.app_token,
        }
        bot.start()
        slack.wait_for_bot()
        try:
            yield Shift(slack, bot, alertmanager)
        finally:
            bot.stop()


def test_ops_run_node_dropped_saves_the_job(shift: Shift, settled: SlurmTestbed) -> None:
    settled.admin_drain("gpu-05", 'RMA "4711" <!channel>')
    job = settled.train(["gpu-03", "gpu-04"])
    death = killed(settled, "gpu-03")
    command = shift.slack.person("ann").command("#ops", "/ops run node-dropped gpu-03")
    assert "run-" in str(command.ack().payload)
    card = shift.slack.channel("#ops").expect(re.compile("did service.start gpu-03(.|\n)*Finished"))
    shown = card.seen
    assert f"job {job.id} (Restarts 0) goes on" in shown
    assert "A1" in shown
    assert "slurmd was dead" in shown
    assert_told(death, shown)
    assert "ssh" in shown or "answers" in shown or "slurmd is failed" in shown
    settled.wait_for_next_step(job, "gpu-03")
    facts = settled.job(job.id)
    assert (facts["JobState"], facts["Restarts"]) == ("RUNNING", "0")
    assert "sound" in shift.bot.ask("audit", "verify").text
    foreign = settled.node("gpu-05")
    assert "DRAIN" in foreign["State"]
    assert foreign["Reason"].startswith("RMA")
    assert shift.slack.unacked == 0
    settled.cancel(job.id)
    settled.admin_resume("gpu-05")


def test_somebody_without_the_right_is_told_so_and_nothing_is_done(
    shift: Shift, settled: SlurmTestbed
) -> None:
    command = shift.slack.person("vic").command("#ops", '/ops drain gpu-02 "x"')
    assert "not allowed" in str(command.ack().payload)
    assert "DRAIN" not in settled.node("gpu-02")["State"]
    log = shift.bot.ask("audit", "query", "action=request.denied").text
    assert log.count("request.denied") == 1


def test_a_run_that_needs_a_person_pages_through_a_real_alertmanager(
    shift: Shift, settled: SlurmTestbed
) -> None:
    settled.shrink_gres("gpu-10", 7)
    settled.set_gpus_seen("gpu-10", 7)
    settled.wait_for_states("gpu-10", "IDLE", "DRAIN", "INVALID_REG")
    shift.slack.person("ann").command("#ops", "/ops run node-dropped gpu-10").ack()
    settled.wait_for(lambda: shift.pages.alerts(), "the page arrived")
    (alert,) = shift.pages.alerts()
    assert "gpu-10" in str(alert)
    assert "A GPU is gone" in str(alert) or "a GPU is gone" in str(alert)
    settled.restore_gres("gpu-10")
    settled.set_gpus_seen("gpu-10", 8)
    settled.admin_resume("gpu-10")
