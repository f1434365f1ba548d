"""A command in Slack becomes a run, its card, and the card's last state in the same message."""

import re

from bot.standin.server import SlackStandIn
from tests.bot.slack.conftest import Site


def test_a_dead_slurmd_is_started_and_one_card_tells_it_all(
    slack: SlackStandIn, site: Site
) -> None:
    site.plugs.pull("kill_slurmd", node="gpu-001")
    command = slack.person("ann").command("#ops", "/ops run node-dropped gpu-001")
    assert "run-1 started" in command.ack().payload["text"]
    card = slack.channel("#ops").expect("run-1 node-dropped gpu-001")
    card.expect_update(re.compile(r"Finished \d\d:\d\d UTC"), within=20)
    assert "A1" in card.seen
    assert card.buttons == ()
    shown = "\n".join(str(version) for version in card.revisions)
    assert re.search(r"llama-70b.*dies \d\d:\d\d UTC if nobody acts", shown)
    card.expect_reply("cause done: only A1 matches")
    card.expect_reply("start done")
    assert len(slack.channel("#ops").messages()) == 1
    assert slack.unacked == 0
