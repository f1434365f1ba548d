"""Which messages are commands, and what a verb means in the thread of a card."""

from typing import Any

import pytest

from bot.slack import asks

MENTION = {"type": "app_mention", "user": "U1", "channel": "C1", "text": "<@UB> drain gpu-01 x"}


def asked(**event: Any) -> asks.Ask | None:
    body = {"team_id": "T1", "event_id": "Ev1", "event": MENTION | event}
    return asks.from_message(body, "UB")


def test_a_mention_loses_every_mention_of_the_bot_and_nothing_else() -> None:
    found = asked(text="<@UB|ops> drain <@UB> gpu-01 <@U2>")
    assert found is not None
    assert found.text.split() == ["drain", "gpu-01", "<@U2>"]
    assert (found.user, found.team, found.key) == ("U1", "T1", "Ev1")


@pytest.mark.parametrize(
    "event",
    [
        {"subtype": "message_changed"},
        {"subtype": "bot_message"},
        {"bot_id": "B1"},
        {"edited": {"user": "U1", "ts": "1"}},
        {"user": ""},
        {"text": "&gt; <@UB> drain gpu-01 x"},
        {"text": "see\n&gt; <@UB> drain gpu-01 x"},
        {"text": "```<@UB> drain gpu-01 x```"},
    ],
)
def test_this_is_no_command(event: dict[str, Any]) -> None:
    assert asked(**event) is None


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("abort", "abort run-7"),
        ("abort wrong node", "abort run-7 wrong node"),
        ("abort run-9 wrong", "abort run-9 wrong"),
        ("abort 9", "abort 9"),
        ("Approve", "Approve run-7"),
        ("drain gpu-01 x", "drain gpu-01 x"),
        ("halt", "halt"),
        ("status", "status run-7"),
    ],
)
def test_in_the_thread_of_a_card_a_verb_means_its_run(said: str, meant: str) -> None:
    assert asks.about_run(said, "run-7") == meant


@pytest.mark.parametrize(
    ("said", "same"),
    [
        ("resume run-7 --done", True),
        ("Resume 7", True),
        ("resume run-8", False),
        ("drain lab-01 x", False),
        ("drain run-7 x", False),
        ("abort", False),
        ("", False),
    ],
)
def test_only_words_about_the_run_of_a_card_mean_that_card(said: str, same: bool) -> None:
    assert asks.names_run(said, "run-7") is same
