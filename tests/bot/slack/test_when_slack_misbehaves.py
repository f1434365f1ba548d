"""Throttled, cut, deaf, down, tidied up by people: runs go on, and Slack ends up with the truth."""

import re
from dataclasses import replace
from typing import Any

import pytest

from audit_log.errors import StoreFull
from audit_log.records import EventKind
from bot.slack.stories import Stories
from bot.standin.server import SlackStandIn
from bot.standin.vocabulary import Message
from tests.bot.slack.conftest import PATIENT, Site

FINISHED = re.compile(r"Finished (\d\d-\d\d )?\d\d:\d\d UTC")


def drain(slack: SlackStandIn, node: str = "gpu-068") -> None:
    slack.person("ann").command("#ops", f"/ops drain {node} x").ack()


def cards(slack: SlackStandIn, channel: str = "#ops") -> list[Message]:
    return [m for m in slack.channel(channel).messages() if m.stored.thread_ts is None]


def new_socket(slack: SlackStandIn, before: frozenset[int]) -> None:
    def there() -> bool:
        usable = {c.number for c in slack.sockets.connections if not c.leaving}
        return bool(usable - before)

    slack.wait_until(there)


def bad(site: Site) -> str:
    return "\n".join(finding.text for finding in site.door.findings() if not finding.good)


def test_a_throttled_update_is_sent_after_the_pause_and_the_last_state_stands(
    slack: SlackStandIn, site: Site
) -> None:
    slack.rate_limit_next("chat.update", times=2)
    slack.rate_limit_next("chat.postMessage", times=1)
    drain(slack)
    slack.channel("#ops").expect(FINISHED)
    assert len(cards(slack)) == 1
    assert [call.status for call in slack.calls("chat.postMessage")][:2] == [429, 200]


def test_a_post_that_was_taken_and_not_answered_is_found_and_not_repeated(
    slack: SlackStandIn, site: Site
) -> None:
    slack.cut_after_next("chat.postMessage")
    drain(slack)
    slack.channel("#ops").expect(FINISHED)
    assert len(cards(slack)) == 1
    site.until(lambda: len(site.records(EventKind.CARD_POSTED)) == 1)


def test_a_reply_that_was_taken_and_not_answered_is_not_repeated(
    slack: SlackStandIn, site: Site
) -> None:
    drain(slack)
    card = slack.channel("#ops").expect("run-1")
    slack.cut_after_next("chat.postMessage")
    card.expect_reply("done")
    site.until(lambda: "final" in str(site.records(EventKind.CARD_NOTED)))
    assert [m.seen.count("drain@gpu-068 done") // 2 for m in card.thread()] == [1]


def test_slack_down_holds_nothing_up_and_is_brought_up_to_date(
    slack: SlackStandIn, site: Site
) -> None:
    drain(slack)
    card = slack.channel("#ops").expect(FINISHED)
    slack.go_down()
    assert site.at_the_shell("ann", "drain gpu-067 y").run == "run-2"
    site.until(lambda: site.state("run-2") == "succeeded")
    site.until(lambda: bad(site))
    slack.come_up()
    slack.channel("#ops").expect(re.compile("run-2(.|\n)*Finished"))
    assert len(cards(slack)) == 2
    assert cards(slack)[0].ts == card.ts
    slack.wait_for_bot()
    site.until(lambda: site.door.connected)
    assert slack.person("ann").command("#ops", "/ops halt x").ack().payload


def test_a_bot_that_starts_while_slack_is_down_works_when_it_is_back(
    slack: SlackStandIn, cold: Site
) -> None:
    slack.go_down()
    cold.start(connected=False)
    assert cold.at_the_shell("ann", "drain gpu-067 y").run == "run-1"
    slack.come_up()
    slack.channel("#ops").expect(FINISHED)
    slack.wait_for_bot()


def test_what_happened_while_the_bot_was_off_is_shown_after_its_start(
    slack: SlackStandIn, site: Site
) -> None:
    slack.go_down()
    site.at_the_shell("ann", "drain gpu-067 y")
    site.until(lambda: site.state("run-1") == "succeeded")
    site.stop()
    slack.come_up()
    site.start()
    slack.channel("#ops").expect(FINISHED)
    site.until(lambda: "final" in str(site.records(EventKind.CARD_NOTED)))
    site.stop()
    posts = len(slack.calls("chat.postMessage"))
    site.start()
    assert "run-2" in site.at_the_shell("ann", "drain gpu-066 y").lines[0]
    slack.channel("#ops").expect("run-2")
    assert len(cards(slack)) == 2
    assert len(slack.calls("chat.postMessage")) >= posts + 1


def test_a_deaf_socket_is_replaced_and_doctor_says_so_meanwhile(
    slack: SlackStandIn, cold: Site
) -> None:
    cold.watch = replace(PATIENT, greeting=0.5, silence=0.5, longest_pause=0.3)
    cold.start()
    slack.deafen_sockets(pongs=True)
    cold.until(lambda: "no socket delivers" in bad(cold))
    slack.hear_again()
    cold.until(lambda: cold.door.connected)
    slack.wait_for_bot()
    assert (
        "run-1" in slack.person("ann").command("#ops", "/ops drain gpu-068 x").ack().payload["text"]
    )


def test_refreshed_closed_and_reset_sockets_lose_no_command(
    slack: SlackStandIn, site: Site
) -> None:
    for number, trouble in enumerate(
        (slack.refresh_sockets, slack.close_sockets, slack.reset_sockets)
    ):
        before = frozenset(connection.number for connection in slack.sockets.connections)
        trouble()
        new_socket(slack, before)
        slack.person("ann").command("#ops", f"/ops drain gpu-{60 + number:03d} x").ack()
    assert site.runs() == ["run-1", "run-2", "run-3"]
    assert slack.unacked == 0


def test_a_second_copy_of_the_bot_is_a_finding(slack: SlackStandIn, site: Site) -> None:
    assert "another copy" not in bad(site)
    other = Site(site.folder / "other", slack)
    other.folder.mkdir()
    other.settings_text = site.settings_text.replace(f"{site.folder}/data", f"{site.folder}/other")
    try:
        other.start()
        other.until(lambda: "another copy" in bad(other))
    finally:
        other.end()


def test_a_card_that_somebody_deletes_is_posted_once_more_and_no_oftener(
    slack: SlackStandIn, site: Site
) -> None:
    slack.http_error_next("chat.update", 503, times=2)
    drain(slack)
    card = slack.channel("#ops").expect("run-1")
    card.remove()
    again = slack.channel("#ops").expect("the earlier card is gone")
    again.remove()
    site.until(lambda: "final" in str(site.records(EventKind.CARD_NOTED)))
    assert cards(slack) == []


def test_a_channel_that_cannot_be_used_gives_way_to_the_next(
    slack: SlackStandIn, cold: Site
) -> None:
    cold.start()
    slack.channel("#elsewhere")
    slack.channel("#ops").archive()
    slack.person("ann").command("#elsewhere", "/ops drain gpu-068 x").ack()
    slack.channel("#elsewhere").expect(FINISHED)


def test_where_no_channel_takes_the_card_the_requester_gets_it(
    slack: SlackStandIn, site: Site
) -> None:
    slack.channel("#ops").remove("ops-bot")
    drain(slack)
    slack.person("ann").direct.expect(FINISHED)


def test_blocks_that_slack_refuses_leave_the_words(slack: SlackStandIn, site: Site) -> None:
    slack.fail_next("chat.postMessage", "invalid_blocks")
    drain(slack)
    slack.channel("#ops").expect("gpu-068: Take nodes out of service")
    slack.channel("#ops").expect(FINISHED)


def test_revoked_tokens_stop_slack_and_not_the_runs(slack: SlackStandIn, site: Site) -> None:
    slack.revoke_tokens()
    site.at_the_shell("ann", "drain gpu-067 y")
    site.until(lambda: site.state("run-1") == "succeeded")
    site.until(lambda: "token_revoked" in bad(site))


def test_a_card_that_cannot_be_recorded_is_not_posted_twice(
    slack: SlackStandIn, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = iter(range(6))
    record = Stories._record

    def full(self: Stories, *what: Any) -> None:
        if next(refused, None) is not None:
            raise StoreFull("no space left for the ledger")
        record(self, *what)

    monkeypatch.setattr(Stories, "_record", full)
    drain(slack)
    slack.channel("#ops").expect(FINISHED)
    site.until(lambda: "final" in str(site.records(EventKind.CARD_NOTED)))
    assert len(site.records(EventKind.CARD_POSTED)) == 1
    assert len(cards(slack)) == 1
    assert len([c for c in slack.calls("chat.postMessage") if "thread_ts" in c.arguments]) == 1


def test_a_bot_that_died_between_post_and_record_finds_its_card_again(
    slack: SlackStandIn, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as dying:
        dying.setattr(Stories, "_record", lambda *_: (_ for _ in ()).throw(StoreFull("dead")))
        drain(slack)
        slack.channel("#ops").expect("run-1")
        site.until(lambda: site.state("run-1") == "succeeded")
        site.stop()
    assert cards(slack)
    site.start()
    site.until(lambda: "final" in str(site.records(EventKind.CARD_NOTED)))
    assert len(cards(slack)) == 1
    assert FINISHED.search(cards(slack)[0].seen)
    posts = [c for c in slack.calls("chat.postMessage") if "thread_ts" in c.arguments]
    assert len({c.arguments["metadata"]["event_payload"]["note"] for c in posts}) == len(posts)


def test_the_last_state_does_not_wait_for_the_pace_of_progress(
    slack: SlackStandIn, cold: Site
) -> None:
    cold.pace = replace(cold.pace, update=3600.0, crowded=3600.0)
    cold.start()
    cold.plugs.pull("kill_slurmd", node="gpu-001")
    slack.person("ann").command("#ops", "/ops run node-dropped gpu-001").ack()
    slack.channel("#ops").expect(FINISHED)
    assert len(slack.calls("chat.update")) <= 2
