"""Slack's 429 while the bot looks for what it posted before: it waits as told and goes on."""

import logging
from typing import Any

import pytest

from audit_log.errors import StoreFull
from audit_log.records import EventKind
from bot.slack.stories import Stories
from bot.standin.server import SlackStandIn
from tests.bot.slack.conftest import Site


def cards(slack: SlackStandIn) -> list[str]:
    return [m.seen for m in slack.channel("#ops").messages() if m.stored.thread_ts is None]


@pytest.mark.parametrize("method", ["conversations.history", "conversations.replies"])
def test_a_throttled_look_back_is_repeated_and_no_traceback(
    slack: SlackStandIn,
    cold: Site,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    method: str,
) -> None:
    record, posted = Stories._record, method == "conversations.replies"

    def dying(self: Stories, kind: EventKind, *what: Any) -> None:
        if kind is not EventKind.CARD_POSTED or not posted:
            raise StoreFull("dead")
        record(self, kind, *what)

    cold.start()
    with monkeypatch.context() as patch:
        patch.setattr(Stories, "_record", dying)
        slack.person("ann").command("#ops", "/ops drain gpu-068 x").ack()
        slack.channel("#ops").expect("run-1")
        cold.until(lambda: cold.state("run-1") == "succeeded")
        cold.stop()
    slack.rate_limit_next(method, times=2)
    with caplog.at_level(logging.ERROR):
        cold.start()
        cold.at_the_shell("ann", "drain gpu-067 y")
        slack.wait_until(lambda: len(slack.calls(method)) >= 3)
        cold.until(lambda: str(cold.records(EventKind.CARD_NOTED)).count("final") == 2)
    assert caplog.records == []
    assert len(cards(slack)) == 2


def test_one_refusal_holds_back_every_look_and_no_card(slack: SlackStandIn, site: Site) -> None:
    slack.http_error_next("chat.update", 503, times=1000)
    for node in ("gpu-066", "gpu-067", "gpu-068"):
        slack.person("ann").command("#ops", f"/ops drain {node} {node}").ack()
    site.until(lambda: {site.state(run) for run in site.runs()} == {"succeeded"})
    slack.wait_until(lambda: len(cards(slack)) == 3)
    site.stop()
    slack.faults.clear()
    slack.rate_limit_next("conversations.replies", retry_after=8)
    site.start()
    site.until(lambda: str(site.records(EventKind.CARD_NOTED)).count("final") == 3)
    refused, *looks = slack.calls("conversations.replies")
    assert refused.status == 429
    assert [look.status for look in looks] == [200, 200, 200]
    assert looks[0].at - refused.at >= 8
    updated = [call.at for call in slack.calls("chat.update") if call.status == 200]
    assert len([at for at in updated if at < looks[0].at]) >= 3
