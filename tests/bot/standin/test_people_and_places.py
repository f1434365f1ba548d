"""Guests, strangers, archived and private channels, groups and files are as Slack tells them."""

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.standin.records import SlackError
from bot.standin.server import SlackStandIn
from tests.bot.standin.conftest import Bot


def error(bot: Bot, method: str, **arguments: object) -> str:
    with pytest.raises(SlackApiError) as caught:
        bot.call(method, **arguments)
    told: str = caught.value.response["error"]
    return told


def user(bot: Bot, user_id: str) -> dict[str, object]:
    told: dict[str, object] = bot.call("users.info", user=user_id)["user"]
    return told


def test_users_are_told_with_what_decides_their_rights(slack: SlackStandIn, bot: Bot) -> None:
    ann, eve = slack.person("ann"), slack.stranger("eve")
    ann.make_guest()
    ann.deactivate()
    told = user(bot, ann.id)
    assert (told["is_restricted"], told["deleted"]) == (True, True)
    assert user(bot, eve.id)["is_stranger"] is True
    assert user(bot, eve.id)["team_id"] != user(bot, ann.id)["team_id"]
    assert error(bot, "users.info", user="U404") == "user_not_found"
    assert error(bot, "users.lookupByEmail", email="ann@workspace.invalid") == "users_not_found"
    assert error(bot, "chat.postMessage", channel=ann.id, text="x") == "user_disabled"


def test_a_renamed_person_keeps_the_id(slack: SlackStandIn, online: Bot) -> None:
    ann = slack.person("ann")
    ann.rename("boss")
    ann.command("#ops", "/ops quiet").ack()
    assert (online.seen[0]["user_id"], online.seen[0]["user_name"]) == (ann.id, "boss")


def test_a_disabled_group_looks_empty(slack: SlackStandIn, bot: Bot) -> None:
    group = slack.group("hpc-oncall", ["ann", "bob"])
    members = bot.call("usergroups.users.list", usergroup=group)["users"]
    assert members == [slack.person("ann").id, slack.person("bob").id]
    slack.group("hpc-oncall", ["ann"], disabled=True)
    assert bot.call("usergroups.users.list", usergroup=group)["users"] == []
    assert bot.call("usergroups.list")["usergroups"] == []
    assert error(bot, "usergroups.users.list", usergroup="S404") == "no_such_subteam"


def test_channels_that_the_bot_cannot_write_to_say_why(slack: SlackStandIn, bot: Bot) -> None:
    outside = slack.channel("#outside", with_bot=False)
    hidden = slack.channel("#hidden", private=True, with_bot=False)
    old = slack.channel("#old")
    old.archive()

    def refused(channel: str) -> str:
        return error(bot, "chat.postMessage", channel=channel, text="x")

    assert refused(outside.id) == "not_in_channel"
    assert refused(hidden.id) == "channel_not_found"
    assert refused(old.id) == "is_archived"
    assert refused("C404") == "channel_not_found"
    bot.call("conversations.join", channel=outside.id)
    assert bot.call("chat.postMessage", channel=outside.id, text="x")["ok"]
    with pytest.raises(SlackError, match="is_archived"):
        slack.person("ann").command("#old", "/ops quiet")
    with pytest.raises(SlackError, match="not_in_channel"):
        slack.person("ann").command("#hidden", "/ops quiet")


def test_an_answer_reaches_a_channel_that_the_bot_is_not_in(
    slack: SlackStandIn, online: Bot
) -> None:
    slack.channel("#outside", with_bot=False)
    command = slack.person("ann").command("#outside", "/ops tell")
    command.expect_ephemeral("understood")


def test_a_shared_channel_and_a_strangers_click_show_the_other_team(
    slack: SlackStandIn, online: Bot
) -> None:
    slack.channel("#ops").share()
    slack.person("ann").command("#ops", "/ops run x").ack()
    eve = slack.stranger("eve")
    slack.channel("#ops").expect("waiting").click("Approve", by="eve").ack()
    assert online.seen[-1]["user"]["team_id"] == eve.user.team_id
    channel = slack.channel("#ops").id
    assert online.call("conversations.info", channel=channel)["channel"]["is_ext_shared"]


def test_ephemerals_are_for_members_and_cannot_be_updated(slack: SlackStandIn, bot: Bot) -> None:
    channel, ann = slack.channel("#ops"), slack.person("ann")
    arguments = {"channel": channel.id, "user": ann.id, "text": "psst"}
    assert error(bot, "chat.postEphemeral", **arguments) == "user_not_in_channel"
    channel.invite("ann")
    ts = bot.call("chat.postEphemeral", **arguments)["message_ts"]
    assert error(bot, "chat.update", channel=channel.id, ts=ts, text="x") == "message_not_found"
    assert [message.text for message in slack.ephemerals_of("ann")] == ["psst"]
    assert channel.messages() == ()


def test_only_messages_of_the_bot_can_be_edited(slack: SlackStandIn, bot: Bot) -> None:
    channel = slack.channel("#ops").id
    message = slack.person("ann").say("#ops", "hello")
    update = {"channel": channel, "ts": message.ts, "text": "x"}
    assert error(bot, "chat.update", **update) == "cant_update_message"
    message.remove()
    assert error(bot, "chat.update", **update) == "message_not_found"
    reply = {"channel": channel, "thread_ts": message.ts, "text": "x"}
    assert error(bot, "chat.postMessage", **reply) == "thread_not_found"


def test_metadata_is_found_in_a_thread(slack: SlackStandIn, bot: Bot) -> None:
    channel = slack.channel("#ops").id
    metadata = {"event_type": "card", "event_payload": {"id": "run-1", "rev": 3}}
    parent = bot.call("chat.postMessage", channel=channel, text="card", metadata=metadata)
    bot.call("chat.postMessage", channel=channel, text="log", thread_ts=parent["ts"])
    asked = {"channel": channel, "ts": parent["ts"], "include_all_metadata": True}
    found = bot.call("conversations.replies", **asked)["messages"]
    assert [message["text"] for message in found] == ["card", "log"]
    assert found[0]["metadata"] == metadata
    bot.call("chat.update", channel=channel, ts=parent["ts"], text="card 2")
    card = slack.channel("#ops").expect("card 2")
    assert card.metadata == metadata
    assert [message.text for message in card.thread()] == ["log"]


def test_a_file_uploaded_by_the_sdk_stands_in_the_thread(slack: SlackStandIn, bot: Bot) -> None:
    channel = slack.channel("#ops").id
    parent = bot.call("chat.postMessage", channel=channel, text="card")["ts"]

    async def upload() -> None:
        client = AsyncWebClient(token=slack.bot_token, base_url=slack.base_url)
        await client.files_upload_v2(
            channel=channel,
            thread_ts=parent,
            filename="log.txt",
            content="line\n" * 1000,
            initial_comment="full log",
        )

    bot.do(upload)
    (reply,) = slack.channel("#ops").expect("card").thread()
    assert reply.text == "full log"
    (file,) = slack.world.files.values()
    assert reply.stored.files == (file.id,)
    assert file.content == b"line\n" * 1000


def test_a_direct_message_is_opened_by_posting_to_a_user(slack: SlackStandIn, bot: Bot) -> None:
    ann = slack.person("ann")
    answer = bot.call("chat.postMessage", channel=ann.id, text="only you")
    assert answer["channel"].startswith("D")
    bot.call("chat.update", channel=answer["channel"], ts=answer["ts"], text="edited")
    assert ann.direct.expect("edited").revisions[0].text == "only you"


def test_a_refused_token_is_told_apart_from_a_missing_one(slack: SlackStandIn, bot: Bot) -> None:
    async def answers() -> list[str]:
        told = []
        for token in ("xoxb-other", None):
            client = AsyncWebClient(token=token, base_url=slack.base_url)
            with pytest.raises(SlackApiError) as caught:
                await client.api_call("auth.test")
            told.append(caught.value.response["error"])
        return told

    assert bot.do(answers) == ["invalid_auth", "not_authed"]
    assert error(bot, "chat.shout") == "unknown_method"
