"""What Slack refuses is refused in Slack's words, and told where."""

from datetime import UTC, datetime, timedelta

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.webhook.async_client import AsyncWebhookClient

from bot.standin.server import SlackStandIn, Strictness
from config.clock import Instant
from config.system_clock import SystemClock
from tests.bot.standin.conftest import MODAL, Bot


class HandClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.passed = timedelta()

    def now(self) -> Instant:
        return Instant(wall=datetime(2026, 11, 30, tzinfo=UTC) + self.passed, monotonic=self.passed)


def section(text: str) -> dict[str, object]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def button(**changes: object) -> dict[str, object]:
    words = {"type": "plain_text", "text": "Go"}
    element = {"type": "button", "action_id": "go", "text": words} | changes
    return {"type": "actions", "elements": [element]}


def post(slack: SlackStandIn, bot: Bot, **content: object) -> dict[str, object]:
    """The answer to a post, refused or not."""
    try:
        return bot.call("chat.postMessage", channel=slack.channel("#ops").id, **content)
    except SlackApiError as refused:
        data: dict[str, object] = refused.response.data
        return data


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        (
            section("x" * 3001),
            "must be less than 3001 characters [json-pointer:/blocks/0/text/text]",
        ),
        (section(""), "must be more than 0 characters [json-pointer:/blocks/0/text/text]"),
        ({"type": "section"}, "missing required field: text [json-pointer:/blocks/0]"),
        ({"type": "nonsense"}, "unsupported type: nonsense [json-pointer:/blocks/0/type]"),
        (
            {"type": "header", "text": {"type": "plain_text", "text": "x" * 151}},
            "must be less than 151 characters [json-pointer:/blocks/0/text/text]",
        ),
        (
            button(value="x" * 2001),
            "must be less than 2001 characters [json-pointer:/blocks/0/elements/0/value]",
        ),
        (
            button(text={"type": "plain_text", "text": "x" * 76}),
            "must be less than 76 characters [json-pointer:/blocks/0/elements/0/text/text]",
        ),
        (
            {"type": "section", "fields": [{"type": "mrkdwn", "text": "x" * 2001}]},
            "must be less than 2001 characters [json-pointer:/blocks/0/fields/0/text]",
        ),
        (
            {"type": "section", "fields": [{"type": "mrkdwn", "text": "x"}] * 11},
            "no more than 10 items allowed [json-pointer:/blocks/0/fields]",
        ),
        (
            {"type": "context", "elements": [{"type": "mrkdwn", "text": "x"}] * 11},
            "no more than 10 items allowed [json-pointer:/blocks/0/elements]",
        ),
        (
            {"type": "actions", "elements": []},
            "must provide at least 1 item [json-pointer:/blocks/0/elements]",
        ),
    ],
)
def test_a_block_over_its_limit_is_refused_with_its_place(
    slack: SlackStandIn, bot: Bot, block: dict[str, object], complaint: str
) -> None:
    answer = post(slack, bot, text="x", blocks=[block])
    assert answer["error"] == "invalid_blocks"
    assert answer["response_metadata"] == {"messages": [f"[ERROR] {complaint}"]}
    assert slack.channel("#ops").messages() == ()


def test_fifty_blocks_pass_and_fifty_one_do_not(slack: SlackStandIn, bot: Bot) -> None:
    assert post(slack, bot, text="x", blocks=[{"type": "divider"}] * 50)["ok"]
    assert post(slack, bot, text="x", blocks=[{"type": "divider"}] * 51)["error"] == (
        "invalid_blocks"
    )


def test_the_text_of_all_blocks_together_has_a_limit(slack: SlackStandIn, bot: Bot) -> None:
    assert post(slack, bot, text="x", blocks=[section("x" * 2640)] * 5)["ok"]
    over = [section("x" * 2640)] * 5 + [section("x")]
    assert post(slack, bot, text="x", blocks=over)["error"] == "msg_blocks_too_long"


def test_text_is_cut_when_posted_and_refused_when_updated(slack: SlackStandIn, bot: Bot) -> None:
    answer = post(slack, bot, text="x" * 40_001)
    (message,) = slack.channel("#ops").messages()
    assert len(message.text) == 40_000
    with pytest.raises(SlackApiError, match="msg_too_long"):
        bot.call("chat.update", channel=answer["channel"], ts=answer["ts"], text="x" * 4001)
    bot.call("chat.update", channel=answer["channel"], ts=answer["ts"], text="y" * 4000)
    assert message.text == "y" * 4000
    assert post(slack, bot, text="")["error"] == "no_text"


def test_the_limits_can_be_switched_off(bot: Bot) -> None:
    with SlackStandIn(SystemClock(), strictness=Strictness(sizes=False, rates=False)) as slack:
        other = Bot(slack)
        for _ in range(20):
            assert post(slack, other, text="x", blocks=[section("x" * 9000)])["ok"]
        other.stop()


def test_a_channel_takes_one_message_a_second(bot: Bot) -> None:
    clock = HandClock()
    with SlackStandIn(clock) as slack:
        other = Bot(slack)
        answers = [post(slack, other, text="x") for _ in range(6)]
        assert [answer["ok"] for answer in answers] == [True] * 5 + [False]
        assert answers[5]["error"] == "ratelimited"
        slack.channel("#other")
        assert other.call("chat.postMessage", channel=slack.channel("#other").id, text="x")["ok"]
        clock.passed += timedelta(seconds=1)
        assert post(slack, other, text="x")["ok"]
        assert not post(slack, other, text="x")["ok"]
        other.stop()


def test_tier_two_takes_twenty_calls_a_minute_and_names_the_wait(bot: Bot) -> None:
    clock = HandClock()
    with SlackStandIn(clock) as slack:
        other = Bot(slack)
        for _ in range(20):
            other.call("usergroups.list")
        with pytest.raises(SlackApiError) as caught:
            other.call("usergroups.list")
        assert caught.value.response.status_code == 429
        assert caught.value.response.headers["Retry-After"] == "3"
        clock.passed += timedelta(seconds=3)
        other.call("usergroups.list")
        other.stop()


def test_a_trigger_lives_three_seconds_and_opens_one_view(bot: Bot) -> None:
    clock = HandClock()
    with SlackStandIn(clock) as slack:
        other = Bot(slack)
        slack.channel("#ops")
        ann = slack.person("ann")

        def attempt(trigger: str) -> object:
            try:
                return other.call("views.open", trigger_id=trigger, view=MODAL)["ok"]
            except SlackApiError as refused:
                return refused.response["error"]

        fresh = ann.command("#ops", "/ops form").interaction.trigger_id
        assert [attempt(fresh), attempt(fresh)] == [True, "exchanged_trigger_id"]
        late = ann.command("#ops", "/ops form").interaction.trigger_id
        clock.passed += timedelta(seconds=3.1)
        assert attempt(late) == "expired_trigger_id"
        assert attempt("made-up") == "invalid_trigger_id"
        other.stop()


def test_an_older_hash_conflicts(slack: SlackStandIn, bot: Bot) -> None:
    user = slack.person("ann").id
    view = {"type": "home", "blocks": [section("one")]}
    first = bot.call("views.publish", user_id=user, view=view)["view"]["hash"]
    bot.call("views.publish", user_id=user, view=view, hash=first)
    with pytest.raises(SlackApiError, match="hash_conflict"):
        bot.call("views.publish", user_id=user, view=view, hash=first)


def test_the_stack_of_views_holds_three(slack: SlackStandIn, bot: Bot) -> None:
    def trigger() -> str:
        return slack.person("ann").command("#ops", "/ops form").interaction.trigger_id

    bot.call("views.open", trigger_id=trigger(), view=MODAL)
    for _ in range(2):
        bot.call("views.push", trigger_id=trigger(), view=MODAL)
    with pytest.raises(SlackApiError, match="push_limit_reached"):
        bot.call("views.push", trigger_id=trigger(), view=MODAL)
    assert len(slack.person("ann").views) == 3


def test_a_modal_over_its_limits_is_refused(slack: SlackStandIn, bot: Bot) -> None:
    trigger = slack.person("ann").command("#ops", "/ops form").interaction.trigger_id
    long = MODAL | {"title": {"type": "plain_text", "text": "x" * 25}}
    with pytest.raises(SlackApiError) as caught:
        bot.call("views.open", trigger_id=trigger, view=long)
    assert caught.value.response["response_metadata"]["messages"] == [
        "[ERROR] must be less than 25 characters [json-pointer:/view/title/text]"
    ]


def test_a_response_url_takes_five_answers_within_thirty_minutes(bot: Bot) -> None:
    clock = HandClock()
    with SlackStandIn(clock) as slack:
        slack.channel("#ops")
        slack.person("ann").command("#ops", "/ops quiet")
        url = slack.deliveries[0].payload["response_url"]

        async def answer() -> tuple[int, str]:
            response = await AsyncWebhookClient(url).send(text="late")
            return response.status_code, response.body

        assert [bot.do(answer) for _ in range(5)] == [(200, "ok")] * 5
        status, body = bot.do(answer)
        assert status == 404
        assert "used_url" in body
        assert len(slack.ephemerals_of("ann")) == 5
        clock.passed += timedelta(minutes=31)
        status, body = bot.do(answer)
        assert status == 404
        assert "expired_url" in body
