"""The real Bolt app takes commands, clicks, forms and mentions through the stand-in."""

import re

import pytest

from bot.standin.server import SlackStandIn
from tests.bot.standin.conftest import Bot


def test_a_command_is_acknowledged_and_its_message_appears(
    slack: SlackStandIn, online: Bot
) -> None:
    command = slack.person("ann").command("#ops", "/ops run node-dropped gpu-03")
    assert command.ack().payload == {}
    message = slack.channel("#ops").expect(re.compile(r"Run \d waiting"))
    assert message.buttons == ("Approve",)
    assert online.seen[0]["text"] == "run node-dropped gpu-03"


def test_the_payload_of_an_acknowledgement_is_shown_to_the_person_alone(
    slack: SlackStandIn, online: Bot
) -> None:
    command = slack.person("ann").command("#ops", "/ops tell")
    assert command.ack().payload["text"] == "understood"
    assert command.expect_ephemeral("understood").stored.visible_to == slack.person("ann").id
    assert slack.channel("#ops").messages() == ()


def test_a_click_updates_the_message_and_keeps_its_old_version(
    slack: SlackStandIn, online: Bot
) -> None:
    slack.person("ann").command("#ops", "/ops run x").ack()
    message = slack.channel("#ops").expect("waiting")
    message.click("Approve", by="bob").ack()
    message.expect_update(f"approved by <@{slack.person('bob').id}>")
    assert message.revisions[0].text == "Run 1 waiting"
    assert message.buttons == ()


def test_a_button_that_is_gone_can_only_be_clicked_in_an_old_copy(
    slack: SlackStandIn, online: Bot
) -> None:
    slack.person("ann").command("#ops", "/ops run x").ack()
    message = slack.channel("#ops").expect("waiting")
    message.click("Approve", by="bob").ack()
    message.expect_update("approved")
    with pytest.raises(AssertionError, match="there are: none"):
        message.click("Approve", by="bob")
    message.click("Approve", by="bob", revision=0).ack()
    assert online.seen[-1]["actions"][0]["value"] == "apr-1.1"
    assert "actions" not in [block["type"] for block in online.seen[-1]["message"]["blocks"]]


def test_a_form_opens_suggests_refuses_and_closes(slack: SlackStandIn, online: Bot) -> None:
    view = slack.person("ann").command("#ops", "/ops form").view()
    options = view.suggest("node-name", "gpu").ack().payload["options"]
    assert [option["value"] for option in options] == ["gpu-01", "gpu-02"]

    def chosen(name: str) -> dict[str, object]:
        return {"node": {"node-name": {"selected_option": {"value": name}}}}

    refused = view.submit(chosen("cpu-01")).ack()
    assert refused.payload["errors"] == {"node": "has no GPU"}
    assert len(slack.person("ann").views) == 1
    assert "trouble connecting" in view.submit(chosen("gpu-02")).error()
    view.submit(chosen("gpu-01")).ack()
    slack.wait_until(lambda: slack.person("ann").views == ())


def test_a_mention_is_answered_in_its_thread(slack: SlackStandIn, online: Bot) -> None:
    message = slack.person("ann").say("#ops", "@ops-bot status")
    assert message.expect_reply("you called").stored.thread_ts == message.ts
    assert online.seen[0]["event"]["type"] == "app_mention"


def test_a_home_tab_is_published_when_it_is_opened(slack: SlackStandIn, online: Bot) -> None:
    slack.person("ann").open_home()
    assert "waiting" in slack.person("ann").home().seen


def test_respond_shows_each_answer_to_the_person(slack: SlackStandIn, online: Bot) -> None:
    command = slack.person("ann").command("#ops", "/ops many")
    command.expect_ephemeral("answer 4")
    assert [message.text for message in command.ephemerals()] == [f"answer {n}" for n in range(5)]
