"""Each fault switch does to the real SDK what Slack or a network would do."""

import threading

import pytest
from aiohttp import ClientConnectionError
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_sdk.errors import SlackApiError

from bot.standin.deliveries import Kind
from bot.standin.server import SlackStandIn, Strictness
from config.system_clock import SystemClock
from tests.bot.standin.conftest import Bot


def refusal(bot: Bot, method: str, **arguments: object) -> SlackApiError:
    with pytest.raises(SlackApiError) as caught:
        bot.call(method, **arguments)
    return caught.value


def test_a_rate_limited_call_tells_how_long_to_wait(slack: SlackStandIn, bot: Bot) -> None:
    slack.rate_limit_next("chat.update", times=2, retry_after=7)
    for _ in range(2):
        error = refusal(bot, "chat.update", channel="C1", ts="1", text="x")
        assert error.response.status_code == 429
        assert error.response.headers["Retry-After"] == "7"
    assert refusal(bot, "chat.update", channel="C1", ts="1").response["error"] == (
        "channel_not_found"
    )


def test_a_call_can_be_made_to_fail_once(slack: SlackStandIn, bot: Bot) -> None:
    channel = slack.channel("#ops").id
    slack.fail_next("chat.postMessage", "restricted_action")
    error = refusal(bot, "chat.postMessage", channel=channel, text="x")
    assert error.response["error"] == "restricted_action"
    assert slack.channel("#ops").messages() == ()
    assert bot.call("chat.postMessage", channel=channel, text="x")["ok"]


def test_an_http_error_is_no_answer_of_the_api(slack: SlackStandIn, bot: Bot) -> None:
    slack.http_error_next("auth.test", status=503)
    with pytest.raises(SlackApiError) as caught:
        bot.call("auth.test")
    assert caught.value.response.status_code == 503


def test_a_cut_connection_leaves_the_message_and_a_retry_posts_it_twice(
    slack: SlackStandIn, bot: Bot
) -> None:
    slack.cut_after_next("chat.postMessage", times=1)
    bot.call("chat.postMessage", channel=slack.channel("#ops").id, text="once")
    assert [m.text for m in slack.channel("#ops").messages()] == ["once", "once"]


def test_a_cut_connection_on_each_try_is_an_unknown_outcome(slack: SlackStandIn, bot: Bot) -> None:
    slack.cut_after_next("chat.postMessage", times=2)
    with pytest.raises(ClientConnectionError):
        bot.call("chat.postMessage", channel=slack.channel("#ops").id, text="x")
    assert len(slack.channel("#ops").messages()) == 2


def test_a_slow_answer_arrives_after_others(slack: SlackStandIn, bot: Bot) -> None:
    slack.slow("auth.test", 1.0)
    done: list[str] = []

    def call() -> None:
        bot.call("auth.test")
        done.append("auth.test")

    slow = threading.Thread(target=call)
    slow.start()
    bot.call("team.info")
    done.append("team.info")
    slow.join(5)
    assert done == ["team.info", "auth.test"]


def test_a_refresh_loses_no_command(slack: SlackStandIn, online: Bot) -> None:
    ann = slack.person("ann")
    commands = [ann.command("#ops", f"/ops quiet {n}") for n in range(20)]
    slack.refresh_sockets()
    commands += [ann.command("#ops", f"/ops quiet {n}") for n in range(20, 40)]
    for command in commands:
        command.ack()
    assert slack.unacked == 0
    assert slack.sockets.opened == 2
    assert {over for d in slack.deliveries[20:] for over in d.sent_over} == {2}
    assert sorted(int(b["text"].split()[1]) for b in online.seen) == list(range(40))


def test_closed_and_reset_sockets_are_opened_again(slack: SlackStandIn, online: Bot) -> None:
    slack.close_sockets()
    slack.wait_until(lambda: slack.sockets.opened == 2)
    slack.person("ann").command("#ops", "/ops quiet").ack()
    slack.reset_sockets()
    slack.wait_until(lambda: slack.sockets.opened == 3)
    slack.person("ann").command("#ops", "/ops quiet").ack()


def test_a_duplicate_delivery_carries_the_same_ids(slack: SlackStandIn, online: Bot) -> None:
    slack.duplicate_next()
    slack.person("ann").command("#ops", "/ops quiet").ack()
    slack.wait_until(lambda: slack.deliveries[0].acks == 2)
    assert online.seen[0]["trigger_id"] == online.seen[1]["trigger_id"]
    slack.person("ann").command("#ops", "/ops quiet").ack()
    assert len(online.seen) == 3


def test_only_the_first_acknowledgement_is_shown(slack: SlackStandIn, online: Bot) -> None:
    slack.duplicate_next()
    command = slack.person("ann").command("#ops", "/ops tell")
    slack.wait_until(lambda: slack.deliveries[0].acks == 2)
    assert [message.text for message in command.ephemerals()] == ["understood"]


def test_a_deaf_socket_lets_the_person_see_an_error(slack: SlackStandIn, online: Bot) -> None:
    slack.deafen_sockets(pongs=True)
    command = slack.person("ann").command("#ops", "/ops quiet")
    assert command.error() == "operation_timeout"
    assert slack.unacked == 1
    assert online.seen == []
    slack.hear_again()
    slack.person("ann").command("#ops", "/ops quiet").ack()


def test_an_unanswered_ping_makes_the_sdk_come_back(slack: SlackStandIn, online: Bot) -> None:
    slack.deafen_sockets(pongs=False)
    slack.wait_until(lambda: slack.sockets.opened >= 2)


def test_a_workspace_that_is_down_refuses_and_comes_back_with_its_messages(
    slack: SlackStandIn, online: Bot
) -> None:
    port = slack.base_url
    slack.person("ann").command("#ops", "/ops run x").ack()
    message = slack.channel("#ops").expect("waiting")
    slack.go_down()
    with pytest.raises(ClientConnectionError):
        online.call("auth.test")
    slack.come_up()
    assert slack.base_url == port
    slack.wait_until(lambda: slack.sockets.opened == 2)
    slack.wait_for_bot()
    message.click("Approve", by="bob").ack()
    message.expect_update("approved")


def test_it_can_be_stopped_while_it_is_down_and_twice(slack: SlackStandIn, online: Bot) -> None:
    slack.go_down()
    slack.stop()
    slack.stop()
    with pytest.raises(ClientConnectionError):
        online.call("auth.test")


def test_a_port_that_is_taken_is_an_error_and_leaves_no_thread(slack: SlackStandIn) -> None:
    port = int(slack.url.rpartition(":")[2])
    second = SlackStandIn(SystemClock(), port=port)
    with pytest.raises(OSError, match="in use"):
        second.start()
    assert "slack-stand-in" in [thread.name for thread in threading.enumerate()]
    slack.stop()
    assert "slack-stand-in" not in [thread.name for thread in threading.enumerate()]


def test_a_command_without_any_socket_fails(slack: SlackStandIn) -> None:
    command = slack.person("ann").command("#ops", "/ops quiet")
    assert command.error() == "dispatch_failed"


def test_an_envelope_goes_to_one_of_several_sockets(slack: SlackStandIn, bot: Bot) -> None:
    bot.start(sockets=2)
    for number in range(4):
        slack.person("ann").command("#ops", f"/ops quiet {number}").ack()
    assert len(bot.seen) == 4
    assert {over for d in slack.deliveries for over in d.sent_over} == {1, 2}
    assert all(len(d.sent_over) == 1 for d in slack.deliveries)


def test_the_eleventh_socket_is_told_to_go(slack: SlackStandIn, bot: Bot) -> None:
    bot.start(sockets=10)
    reasons: list[str] = []

    async def connect_one_more() -> None:
        import aiohttp

        async with aiohttp.ClientSession() as session:
            url = slack.base_url + "apps.connections.open"
            headers = {"Authorization": f"Bearer {slack.app_token}"}
            async with session.post(url, headers=headers) as answer:
                link = (await answer.json())["url"]
            async with session.ws_connect(link) as socket:
                reasons.append((await socket.receive_json())["reason"])

    bot.do(connect_one_more)
    assert reasons == ["too_many_websockets"]


def test_an_unacknowledged_event_is_sent_again_with_the_same_event_id(bot: Bot) -> None:
    strictness = Strictness(retry_after=(1.0,))
    with SlackStandIn(SystemClock(), strictness=strictness) as slack:
        slack.channel("#ops")
        other = Bot(slack)
        other.start()
        slack.deafen_sockets(pongs=True)
        message = slack.person("ann").say("#ops", "@ops-bot status")
        slack.wait_until(lambda: slack.unacked == 1)
        slack.hear_again()
        message.expect_reply("you called")
        slack.wait_until(lambda: len(slack.deliveries) == 2 and slack.deliveries[1].acks == 1)
        first, second = slack.deliveries
        assert first.kind is Kind.EVENT
        assert first.payload["event_id"] == second.payload["event_id"]
        assert second.envelope()["retry_attempt"] == 1
        assert [body["event_id"] for body in other.seen] == [first.payload["event_id"]]
        other.stop()


def test_swapped_tokens_are_named(slack: SlackStandIn, bot: Bot) -> None:
    async def connect() -> None:
        from slack_bolt.app.async_app import AsyncApp
        from slack_sdk.web.async_client import AsyncWebClient

        client = AsyncWebClient(token=slack.app_token, base_url=slack.base_url)
        with pytest.raises(SlackApiError, match="not_allowed_token_type"):
            await client.auth_test()
        app = AsyncApp(client=AsyncWebClient(token=slack.bot_token, base_url=slack.base_url))
        handler = AsyncSocketModeHandler(app, slack.bot_token)
        with pytest.raises(SlackApiError, match="not_allowed_token_type"):
            await handler.client.issue_new_wss_url()
        await handler.client.aiohttp_client_session.close()
        handler.client.message_processor.cancel()

    bot.do(connect)


def test_a_revoked_token_and_a_missing_scope_are_told(slack: SlackStandIn, bot: Bot) -> None:
    slack.api.scopes.discard("usergroups:read")
    error = refusal(bot, "usergroups.list").response
    assert (error["error"], error["needed"]) == ("missing_scope", "usergroups:read")
    assert "chat:write" in error.headers["x-oauth-scopes"]
    slack.revoke_tokens()
    assert refusal(bot, "auth.test").response["error"] == "token_revoked"
