"""In the channel of one cluster nothing is changed on another, unless it is named."""

from collections.abc import Iterator

import pytest

from actions.simulated.description import describe
from actions.simulated.server import SimulationServer
from actions.simulated.stage import Stage
from bot.standin.server import SlackStandIn
from config.system_clock import SystemClock
from tests.bot.slack.conftest import Site

SECOND = """  lab:
    kind: simulated
    simulated_socket: {folder}/lab.sock
    channel: {channel}
    pools:
      all: {{nodes: "lab-[01-08]", max_out: 50%}}
    protected: lab-ctl
people:
"""


@pytest.fixture
def two(slack: SlackStandIn, cold: Site) -> Iterator[Site]:
    """A bot over two clusters with a channel each."""
    world = {
        "cluster": "lab",
        "starts_at": SystemClock().now().wall,
        "nodes": [{"names": "lab-[01-08]"}],
        "partitions": [{"name": "all", "nodes": "lab-[01-08]", "default": True}],
    }
    second = SECOND.format(folder=cold.folder, channel=slack.channel("#lab").id)
    cold.settings_text = cold.settings_text.replace("people:\n", second)
    with SimulationServer(Stage(describe(world), SystemClock()), cold.folder / "lab.sock"):
        cold.start()
        yield cold
        cold.stop()


def answer(slack: SlackStandIn, channel: str, text: str) -> str:
    return str(slack.person("ann").command(channel, f"/ops {text}").ack().payload.get("text", ""))


def test_a_change_on_another_channels_cluster_is_refused_with_where_to_go(
    slack: SlackStandIn, two: Site
) -> None:
    told = answer(slack, "#ops", "drain lab-01 x")
    assert "this channel belongs to sim, and that is on lab: say it in #lab" in told
    assert "--cluster lab" in told
    assert two.runs() == []
    assert "run-1 started" in answer(slack, "#lab", "drain lab-01 x")
    assert "run-2 started" in answer(slack, "#ops", "drain lab-02 x --cluster lab")


def test_a_channel_of_no_cluster_serves_all_and_questions_are_free(
    slack: SlackStandIn, two: Site
) -> None:
    slack.channel("#night")
    assert "run-1 started" in answer(slack, "#night", "drain lab-01 x")
    asked = slack.person("ann").command("#ops", "/ops node lab-01")
    asked.expect_ephemeral("lab-01 on lab")


def test_a_run_of_another_cluster_can_be_stopped_anywhere_and_let_go_on_at_its_own_place(
    slack: SlackStandIn, two: Site
) -> None:
    two.at_the_shell("adm", "halt x")
    assert "run-1 started" in answer(slack, "#lab", "drain lab-01 x")
    slack.channel("#lab").expect("halted: ")
    (card,) = [message for message in slack.channel("#lab").messages() if message.buttons]
    assert "run-1 is paused" in answer(slack, "#ops", "pause run-1")
    two.until(lambda: two.state("run-1") == "paused")
    told = answer(slack, "#ops", "resume run-1")
    assert "say it in #lab" in told
    assert "--cluster" not in told
    slack.wait_until(lambda: "Resume" in card.buttons)
    card.click("Resume", by="ann").expect_ephemeral("run-1 goes on")
