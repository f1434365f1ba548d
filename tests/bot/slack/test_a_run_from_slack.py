"""A command in Slack becomes a run, its card, and the card's last state in the same message."""

import re
from datetime import timedelta

from actions.simulated.writes import FaultKind
from audit_log.records import EventKind
from bot.slack.keeper import Pace
from bot.standin.records import BOT_USER
from bot.standin.server import SlackStandIn
from tests.bot.slack.conftest import Site

FINAL = re.compile(r"Finished (\d\d-\d\d )?\d\d:\d\d UTC")


def test_a_dead_slurmd_is_started_and_one_card_tells_it_all(
    slack: SlackStandIn, cold: Site
) -> None:
    cold.pace = Pace(look=0.01, update=0.0)
    cold.start()
    cold.plugs.pull("kill_slurmd", node="gpu-001")
    command = slack.person("ann").command("#ops", "/ops run node-dropped gpu-001")
    assert "run-1 started" in command.ack().payload["text"]
    card = slack.channel("#ops").expect("run-1 node-dropped gpu-001")
    card.expect_update(FINAL)
    assert "A1" in card.seen
    assert card.buttons == ()
    shown = "\n".join(str(version) for version in card.revisions)
    assert re.search(r"llama-70b.*dies from (\d\d-\d\d )?\d\d:\d\d UTC on if nobody acts", shown)
    card.expect_reply("cause done: only A1 matches")
    card.expect_reply("start done")
    assert len(slack.channel("#ops").messages()) == 1
    assert slack.unacked == 0


def test_called_runs_are_told_in_the_thread_of_their_caller(
    slack: SlackStandIn, site: Site
) -> None:
    site.plugs.pull("kill_slurmd", node="gpu-068")
    site.plugs.forward(timedelta(minutes=10))
    slack.person("ann").command("#ops", "/ops run node-dropped gpu-068").ack()
    card = slack.channel("#ops").expect("run-1 node-dropped gpu-068")
    slack.wait_until(lambda: "Go" in card.buttons)
    card.click("Go", by="ann").expect_ephemeral("approved")
    card.expect_update(FINAL)
    assert site.runs() == ["run-1"]
    assert site.state("run-2") == "succeeded", card.seen
    card.expect_reply("[run-2]")
    tops = [m for m in slack.channel("#ops").messages() if m.stored.thread_ts is None]
    assert [m.ts for m in tops] == [card.ts]


def test_a_run_from_the_command_line_has_its_card_in_the_channel_of_its_cluster(
    slack: SlackStandIn, site: Site
) -> None:
    assert site.at_the_shell("ann", "drain gpu-068 x").run == "run-1"
    slack.channel("#ops").expect(FINAL)


def test_without_a_channel_of_the_cluster_the_card_stands_where_the_command_was_typed(
    slack: SlackStandIn, cold: Site
) -> None:
    ops = slack.channel("#ops").id
    cold.settings_text = cold.settings_text.replace(f"    channel: {ops}\n", "")
    cold.start()
    slack.channel("#night")
    slack.person("ann").command("#night", "/ops drain gpu-068 x").ack()
    slack.channel("#night").expect(FINAL)
    assert slack.channel("#ops").messages() == ()


def test_a_failed_run_rings_once_with_a_mention_and_an_edit_would_not(
    slack: SlackStandIn, site: Site
) -> None:
    site.plugs.fail_next(FaultKind.REJECTED)
    slack.person("ann").command("#ops", "/ops drain gpu-068 x").ack()
    card = slack.channel("#ops").expect("FAILED")
    thread = slack.channel("#ops").messages()[0]
    ring = thread.expect_reply(f"<@{slack.person('ann').id}>")
    assert ring.stored.broadcast
    assert "FAILED" in ring.seen
    site.until(lambda: "final" in str(site.records(EventKind.CARD_NOTED)))
    assert sum(m.stored.broadcast for m in thread.thread()) == 1
    assert card is not None


def test_hostile_names_are_shown_and_nothing_more(slack: SlackStandIn, site: Site) -> None:
    for node in ("gpu-071", "gpu-072", "gpu-073"):
        site.plugs.pull("log_kernel", node=node, line="x")
        slack.person("ann").command("#ops", f"/ops run node-dropped {node}").ack()
    for name in ("run-1 ", "run-2 ", "run-3 "):
        slack.channel("#ops").expect(re.compile(f"{name}(.|\n)*Finished"))
    said = "\n".join(
        str(version)
        for message in slack.world.messages.values()
        if message.user == BOT_USER
        for version in message.revisions
    )
    assert "a&lt;!channel&gt;&amp;ʼidʼ" in said
    assert "see &lt;#C123&gt;" in said
    assert "<!channel>" not in said
    assert "<#C123>" not in said
    assert "`id`" not in said


def test_the_acknowledgement_comes_before_the_run_is_done(slack: SlackStandIn, site: Site) -> None:
    site.plugs.pull("slow_controller", delay="PT1S")
    command = slack.person("ann").command("#ops", "/ops drain gpu-068 x")
    command.ack()
    assert site.runs() == ["run-1"]
    assert site.state("run-1") not in {"succeeded", "failed"}
    slack.channel("#ops").expect(FINAL)
    assert slack.unacked == 0
