"""A page through Slack is a new message with a mention, and its receipt says what is known."""

from datetime import timedelta

import pytest

from actions.catalogue import MaybeAccepted, NotAccepted
from bot.standin.server import SlackStandIn
from config.settings import PageBackend, PageKind
from tests.bot.slack.conftest import Site

LIMIT = timedelta(seconds=5)


def backend(slack: SlackStandIn, channel: str = "#ops") -> PageBackend:
    return PageBackend(
        kind=PageKind.SLACK,
        channel=slack.channel(channel).id,
        mention=slack.group("oncall", ["ann"]),
    )


def test_a_page_mentions_the_people_on_call_and_a_repeat_goes_into_its_thread(
    slack: SlackStandIn, site: Site
) -> None:
    back = backend(slack)
    post = site.mentions.poster(back)
    where = post("run-1 needs a person", "k1", LIMIT)
    page = slack.channel("#ops").expect("run-1 needs a person")
    assert where == f"{back.channel}/{page.ts}"
    assert page.text.startswith(f"<!subteam^{back.mention}> ")
    post("run-1 still needs a person", "k1", LIMIT)
    assert page.expect_reply("still needs").stored.broadcast


def test_a_page_passes_by_everything_that_is_throttled(slack: SlackStandIn, site: Site) -> None:
    slack.rate_limit_next("chat.update", times=5, retry_after=30)
    slack.person("ann").command("#ops", "/ops drain gpu-068 x").ack()
    slack.channel("#ops").expect("run-1")
    site.mentions.poster(backend(slack))("wake up", "k2", LIMIT)
    slack.channel("#ops").expect("wake up")


@pytest.mark.parametrize("error", ["not_in_channel", "invalid_auth"])
def test_a_refusal_is_known_to_be_one(slack: SlackStandIn, site: Site, error: str) -> None:
    slack.fail_next("chat.postMessage", error)
    with pytest.raises(NotAccepted, match=error):
        site.mentions.poster(backend(slack))("x", "k", LIMIT)


def test_no_answer_is_not_taken_for_a_no(slack: SlackStandIn, site: Site) -> None:
    slack.cut_after_next("chat.postMessage")
    with pytest.raises(MaybeAccepted):
        site.mentions.poster(backend(slack))("x", "k", LIMIT)


def test_slack_down_is_a_no(slack: SlackStandIn, site: Site) -> None:
    back = backend(slack)
    slack.go_down()
    with pytest.raises(NotAccepted):
        site.mentions.poster(back)("x", "k", LIMIT)


def test_a_closed_door_pages_nobody(slack: SlackStandIn, site: Site) -> None:
    back = backend(slack)
    post = site.mentions.poster(back)
    site.stop()
    with pytest.raises(NotAccepted, match="not connected"):
        post("x", "k", LIMIT)


def test_an_answer_too_late_is_not_taken_for_a_no(slack: SlackStandIn, site: Site) -> None:
    slack.slow("chat.postMessage", 1.0)
    with pytest.raises(MaybeAccepted):
        site.mentions.poster(backend(slack))("x", "k", timedelta(milliseconds=200))
