"""What another company would read is not posted: no card, no details, no text of a page."""

from datetime import timedelta

import pytest

from bot.standin.server import SlackStandIn
from config.settings import PageBackend, PageKind
from tests.bot.slack.conftest import Site


def bad(site: Site) -> str:
    return "\n".join(finding.text for finding in site.door.findings() if not finding.good)


@pytest.mark.parametrize("how", ["share", "offer_to_share"])
def test_a_card_stays_out_of_a_channel_that_others_read_and_doctor_says_so(
    slack: SlackStandIn, cold: Site, how: str
) -> None:
    getattr(slack.channel("#ops"), how)()
    slack.channel("#own")
    cold.start()
    slack.person("ann").command("#own", "/ops drain gpu-068 x").ack()
    slack.channel("#own").expect("Finished")
    assert slack.channel("#ops").messages() == ()
    line = f"channel {slack.channel('#ops').id} is shared with another workspace: no card"
    cold.until(lambda: line in bad(cold))
    told = slack.person("ann").command("#ops", "/ops drain gpu-067 x").ack().payload["text"]
    assert "shared with another workspace" in told


def test_a_card_leaves_a_channel_that_is_shared_while_its_run_is_open(
    slack: SlackStandIn, site: Site
) -> None:
    site.at_the_shell("adm", "halt x")
    slack.person("ann").command("#ops", "/ops drain gpu-068 x").ack()
    channel = slack.channel("#ops")
    channel.expect("halted: ")
    # The ring too, which is said right after: what is on its way already cannot be kept inside.
    slack.wait_until(lambda: any("<@" in message.seen for message in channel.messages()))
    channel.share()
    slack.wait_until(lambda: slack.deliveries[-1].acks == 1)
    there = [message.seen for message in channel.messages()]
    site.at_the_shell("adm", "halt --clear done")
    slack.person("ann").direct.expect("Finished")
    assert [message.seen for message in channel.messages()] == there


def test_a_private_channel_of_which_slack_does_not_tell_gets_no_card(
    slack: SlackStandIn, cold: Site
) -> None:
    slack.fail_next("conversations.info", "missing_scope", times=100_000)
    cold.start()
    cold.at_the_shell("ann", "drain gpu-068 x")
    slack.person("ann").direct.expect("Finished")
    assert slack.channel("#ops").messages() == ()


def test_a_page_into_a_shared_channel_wakes_people_and_tells_nothing(
    slack: SlackStandIn, site: Site
) -> None:
    shared = slack.channel("#shared")
    shared.share()
    back = PageBackend(kind=PageKind.SLACK, channel=shared.id, mention=slack.group("x", ["ann"]))
    site.mentions.poster(back)("gpu-017 of job 4711 is down", "k1", timedelta(seconds=5))
    page = shared.expect("Nodewarden has a page")
    assert page.text.startswith("<!subteam^")
    assert "gpu-017" not in page.seen
